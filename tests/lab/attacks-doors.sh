# shellcheck shell=bash disable=SC2154
# Access to a switch's control channel: places that idle clients occupy, and raw TLS clients. Raw
# clients reach the server; banyan's own clients stop before. Sourced by lab-attacks.sh while its
# jobs run, with a switch at $tcp and $tls.

check "control: sixteen clients that said nonsense, and sixteen that are idle, keep nobody out" at switch0 "$control" idle 127.0.0.1 46248

# raw FOLDER OPTIONS...: a TLS client sends a HELLO and writes the answer to $dir/raw. It uses the
# keys of FOLDER; "" for none.
"$control" hello >"$dir/hello"
raw() {
    local keys=()
    [ -z "$1" ] || keys=(-cert "$dir/keys/$1/cert.pem" -key "$dir/keys/$1/key.pem")
    shift
    { cat "$dir/hello"; sleep 2; } | at switch0 timeout 10 openssl s_client -connect 127.0.0.1:46250 -CAfile "$dir/keys/operator/ca.pem" "${keys[@]}" \
        -quiet -no_ign_eof "$@" >"$dir/raw" 2>"$dir/raw.err"
}
raw operator -tls1_3
if [ -s "$dir/raw" ]; then pass "control: a raw TLS client with a controller's certificate is answered"; else fail "control: a raw TLS client with a controller's certificate is answered" "$dir/raw.err"; fi
unanswered() { # unanswered WHAT FOLDER OPTIONS...
    local what=$1
    shift
    raw "$@"
    if [ ! -s "$dir/raw" ] && grep -qiE 'alert|error|unsupported' "$dir/raw.err"; then pass "control: $what gets no answer"; else fail "control: $what gets no answer" "$dir/raw.err"; fi
}
unanswered "a raw TLS client without a certificate" "" -tls1_3
unanswered "a raw TLS client with a host's certificate" host0 -tls1_3
unanswered "a raw TLS client with a switch's certificate" switch0 -tls1_3
unanswered "a controller's certificate under TLS 1.2" operator -tls1_2
check "control: the controller comes in afterwards" at switch0 timeout 20 "$banyan" show "$tls" --keys "$dir/keys/operator"
