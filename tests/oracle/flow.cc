// Checks the planner's bounds with an independent implementation of flows: reads the fabrics and
// claims that plan-campaign --dump has written, finds each bound with LEMON's push-relabel maximum
// flow, and compares. Links nothing of banyan. Prints a line for each difference and ends with `N
// passed, N failed`. Single-threaded.
//   oracle-flow FILE
#include <fstream>
#include <iostream>
#include <numeric>
#include <sstream>
#include <string>
#include <vector>

#include <lemon/preflow.h>
#include <lemon/smart_graph.h>

namespace
{

using Graph = lemon::SmartDigraph;
using Amount = long long;
using Capacity = Graph::ArcMap<Amount>;
using Flow = lemon::Preflow<Graph, Capacity>;

struct Arc {
    int from, to;
    Amount capacity;
};

struct Fabric {
    std::string name;
    int nodes = 0;
    Amount scale = 1;
    std::vector<int> compute;
    std::vector<Arc> arcs;

    Fabric reversed() const
    {
        Fabric turned = *this;

        for (Arc &arc : turned.arcs)
            std::swap(arc.from, arc.to);
        return turned;
    }
};

struct Fraction {
    Amount num, den;

    bool operator==(const Fraction &other) const
    {
        return static_cast<__int128>(num) * other.den == static_cast<__int128>(other.num) * den;
    }
    bool operator<(const Fraction &other) const
    {
        return static_cast<__int128>(num) * other.den < static_cast<__int128>(other.num) * den;
    }
};

Fraction reduced(Amount num, Amount den)
{
    Amount divisor = std::gcd(num, den);

    return {num / divisor, den / divisor};
}

Amount max_flow(const Fabric &fabric, int from, int to)
{
    Graph graph;
    std::vector<Graph::Node> nodes;
    Capacity capacity(graph);

    for (int i = 0; i < fabric.nodes; i++)
        nodes.push_back(graph.addNode());
    for (const Arc &arc : fabric.arcs)
        capacity[graph.addArc(nodes[arc.from], nodes[arc.to])] = arc.capacity;
    Flow flow(graph, capacity, nodes[from], nodes[to]);
    flow.runMinCut();
    return flow.flowValue();
}

Fraction broadcast(const Fabric &fabric, int root)
{
    Amount least = -1;

    for (int node : fabric.compute) {
        if (node == root)
            continue;
        Amount found = max_flow(fabric, root, node);

        least = least < 0 || found < least ? found : least;
    }
    return reduced(least, fabric.scale);
}

Fraction least_cut(const Fabric &fabric)
{
    Amount least = -1;

    for (int from : fabric.compute)
        for (int to : fabric.compute)
            if (from != to) {
                Amount found = max_flow(fabric, from, to);

                least = least < 0 || found < least ? found : least;
            }
    return reduced(least, fabric.scale);
}

// Returns whether every compute node receives q from each other one if the arcs have p times their
// capacity. If not, sets `p` and `q` to those of the violated cut.
bool all_hear(const Fabric &fabric, Amount &p, Amount &q)
{
    Graph graph;
    std::vector<Graph::Node> nodes;
    Capacity capacity(graph);
    Amount all = static_cast<Amount>(fabric.compute.size());
    Graph::Node source = graph.addNode();

    for (int i = 0; i < fabric.nodes; i++)
        nodes.push_back(graph.addNode());
    for (const Arc &arc : fabric.arcs)
        capacity[graph.addArc(nodes[arc.from], nodes[arc.to])] = arc.capacity * p;
    for (int node : fabric.compute)
        capacity[graph.addArc(source, nodes[node])] = q;
    for (int node : fabric.compute) {
        Flow flow(graph, capacity, source, nodes[node]);

        flow.runMinCut();
        if (flow.flowValue() >= all * q)
            continue;
        Amount sending = 0,
               leaving = 0; // the source's side must send its compute nodes' shards to the other side

        for (int other : fabric.compute)
            sending += flow.minCut(nodes[other]) ? 1 : 0;
        for (const Arc &arc : fabric.arcs)
            leaving += flow.minCut(nodes[arc.from]) && !flow.minCut(nodes[arc.to]) ? arc.capacity : 0;
        Fraction next = reduced(sending, leaving);

        p = next.num;
        q = next.den;
        return false;
    }
    return true;
}

// Returns 1/x* of allgather: starts with the cut of one node; each violated cut gives a larger
// candidate, until none is violated.
Fraction inverse_rate(const Fabric &fabric)
{
    Amount leaving = 0;

    for (const Arc &arc : fabric.arcs)
        leaving += arc.from == fabric.compute.front() ? arc.capacity : 0;
    Fraction start = reduced(1, leaving);
    Amount p = start.num, q = start.den;

    while (!all_hear(fabric, p, q))
        ;
    return reduced(p, q);
}

struct Claim {
    std::string what;
    int root = 0;
    Fraction value{0, 1};
};

class Checker
{
  public:
    unsigned passed = 0, failed = 0;
    unsigned long claims = 0, below_cut = 0;

    void check(const Fabric &fabric, const std::vector<Claim> &claimed)
    {
        bool good = true;

        for (const Claim &claim : claimed)
            good = agrees(fabric, claim) && good;
        (good ? passed : failed)++;
    }

  private:
    bool agrees(const Fabric &fabric, const Claim &claim)
    {
        Fraction found{0, 1};

        claims++;
        if (claim.what == "allgather" || claim.what == "reduce-scatter") {
            found = inverse_rate(claim.what == "allgather" ? fabric : fabric.reversed());
            found = reduced(found.num * fabric.scale, found.den);
        } else if (claim.what == "broadcast") {
            found = broadcast(fabric, claim.root);
        } else if (claim.what == "reduce") {
            found = broadcast(fabric.reversed(), claim.root);
        } else if (claim.what == "allreduce") { // a bound may be below the cut, but not above it
            found = least_cut(fabric);
            below_cut += claim.value < found ? 1 : 0;
            if (claim.value < found)
                return true;
        }
        if (found == claim.value)
            return true;
        std::cout << "FAIL   " << fabric.name << ": " << claim.what << ": the planner says "
                  << claim.value.num << "/" << claim.value.den << ", LEMON " << found.num << "/" << found.den
                  << "\n";
        return false;
    }
};

} // namespace

int main(int argc, char **argv)
{
    std::ifstream file(argc == 2 ? argv[1] : "");
    Checker checker;
    Fabric fabric;
    std::vector<Claim> claims;
    std::string line, word;

    if (!file) {
        std::cerr << "usage: oracle-flow FILE   (of plan-campaign --dump)\n";
        return 2;
    }
    while (std::getline(file, line)) {
        std::istringstream words(line);

        words >> word;
        if (word == "fabric") {
            fabric = Fabric();
            claims.clear();
            words >> fabric.name >> fabric.nodes >> fabric.scale;
        } else if (word == "compute") {
            for (int node; words >> node;)
                fabric.compute.push_back(node);
        } else if (word == "arc") {
            Arc arc{};
            words >> arc.from >> arc.to >> arc.capacity;
            fabric.arcs.push_back(arc);
        } else if (word == "claim") {
            Claim claim;
            words >> claim.what >> claim.root >> claim.value.num >> claim.value.den;
            claims.push_back(claim);
        } else if (word == "end") {
            checker.check(fabric, claims);
        }
    }
    std::cout << "oracle: " << checker.passed + checker.failed << " fabrics, " << checker.claims
              << " bounds by LEMON's flows, " << checker.failed
              << " fabrics with differences; allreduce is bounded below the least cut on "
              << checker.below_cut << "\n"
              << checker.passed << " passed, " << checker.failed << " failed\n";
    return checker.failed || checker.passed == 0;
}
