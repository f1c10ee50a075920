"""Computes with NetworkX what graph.algorithm is compared with.

Reads {"name": {"nodes": n, "edges": [[from, to, weight], ...]}} and writes the
same with "want". Nodes are numbers.
"""
import json
import sys

import networkx as nx
from networkx.algorithms.link_analysis.pagerank_alg import _pagerank_python as pagerank  # needs no numpy

graphs = json.load(sys.stdin)
for graph in graphs.values():
    g = nx.DiGraph()
    g.add_nodes_from(range(graph["nodes"]))
    g.add_weighted_edges_from(graph["edges"])
    u = nx.Graph()
    u.add_nodes_from(g)
    for a, b, w in graph["edges"]:
        u.add_edge(a, b, weight=w + (u[a][b]["weight"] if u.has_edge(a, b) else 0))

    def numbers(values):
        return [values[i] for i in range(graph["nodes"])]

    def distances(values):
        return [values.get(i) for i in range(graph["nodes"])]

    louvain = nx.community.louvain_communities(u, seed=1)
    graph["want"] = {
        "pagerank": numbers(pagerank(g, tol=1e-12, max_iter=1000, weight=None)),
        "weighted_pagerank": numbers(pagerank(g, tol=1e-12, max_iter=1000)),
        "betweenness": numbers(nx.betweenness_centrality(u)),
        "directed_betweenness": numbers(nx.betweenness_centrality(g)),
        "closeness": numbers(nx.closeness_centrality(u)),
        "directed_closeness": numbers(nx.closeness_centrality(g.reverse())),
        "components": sorted((sorted(c) for c in nx.connected_components(u)), key=lambda c: (-len(c), c)),
        "distances": distances(nx.single_source_shortest_path_length(g, 0)),
        "weighted_distances": distances(nx.single_source_dijkstra_path_length(g, 0)),
        "modularity": nx.community.modularity(u, louvain),
    }
json.dump(graphs, sys.stdout, indent=None, separators=(",", ":"))
