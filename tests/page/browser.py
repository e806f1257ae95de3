"""Drives Debian's Chromium through chromedriver: the part of W3C WebDriver that the test of the live
page needs, and Chromium's own commands for colours and console messages. Standard library only."""
import base64, json, os, socket, subprocess, time, urllib.request

ELEMENT = "element-6066-11e4-a52e-4f735466cecf"


class Browser:
    def __init__(self, folder, width=1440, height=1560):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self.base = f"http://127.0.0.1:{port}"
        self.log = open(os.path.join(folder, "chromedriver.log"), "wb")
        self.driver = subprocess.Popen(["chromedriver", f"--port={port}"], stdout=self.log, stderr=self.log,
                                       env={**os.environ, "HOME": folder})
        arguments = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars",
                     "--disable-background-networking", "--no-first-run", f"--window-size={width},{height}",
                     f"--user-data-dir={folder}/profile"]
        for attempt in range(100):
            try:
                self.session = self.call("POST", "/session", {"capabilities": {"alwaysMatch": {
                    "browserName": "chrome", "goog:loggingPrefs": {"browser": "ALL"},
                    "goog:chromeOptions": {"args": arguments}}}}, bare=True)["sessionId"]
                break
            except OSError:
                if attempt == 99 or self.driver.poll() is not None:
                    raise
                time.sleep(0.1)

    def call(self, method, path, body=None, bare=False):
        url = self.base + path if bare else f"{self.base}/session/{self.session}{path}"
        data = json.dumps(body if body is not None else {}).encode() if method == "POST" else None
        request = urllib.request.Request(url, data=data, method=method, headers={"Content-Type": "application/json"})
        try:
            with urllib.request.urlopen(request, timeout=120) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as error:
            raise RuntimeError(json.load(error)["value"]["message"]) from error

    def chromium(self, command, **parameters):
        return self.call("POST", "/goog/cdp/execute", {"cmd": command, "params": parameters})

    def open(self, url):
        self.call("POST", "/url", {"url": url})

    def run(self, script, *arguments):
        """Runs a function body in the page; its last argument is called with the result."""
        return self.call("POST", "/execute/async", {"script": script, "args": list(arguments)})

    def value(self, expression):
        return self.call("POST", "/execute/sync", {"script": f"return {expression}", "args": []})

    def wait(self, expression, seconds=15):
        """Waits until the expression is true. Returns how long that took."""
        start = time.monotonic()
        while not self.value(expression):
            if time.monotonic() - start > seconds:
                raise RuntimeError(f"not within {seconds} s: {expression}")
            time.sleep(0.02)
        return time.monotonic() - start

    def keys(self, selector, *keys):
        element = self.call("POST", "/element", {"using": "css selector", "value": selector})[ELEMENT]
        self.call("POST", f"/element/{element}/value", {"text": "".join(keys)})

    def theme(self, theme):
        self.chromium("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": theme}])

    def picture(self, path):
        with open(path, "wb") as file:
            file.write(base64.b64decode(self.call("GET", "/screenshot")))

    def messages(self):
        """Console messages since the last call."""
        return self.call("POST", "/se/log", {"type": "browser"})

    def close(self):
        try:
            self.call("DELETE", "")
        except (RuntimeError, OSError):
            pass
        self.driver.terminate()
        self.driver.wait()
        self.log.close()
