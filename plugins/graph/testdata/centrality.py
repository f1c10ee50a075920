"""Computes with NetworkX the centrality of graphs with parallel edges and loops.

Reads {"name": {"nodes": n, "edges": [{"From": a, "To": b, "Weight": w}, ...]}} and
writes {"name": {"measure direction [weighted]": [scores by node]}}.
"""
import json
import sys

import networkx as nx

wants = {}
for name, graph in json.load(sys.stdin).items():
    out = nx.MultiDiGraph()
    out.add_nodes_from(range(graph["nodes"]))
    for e in graph["edges"]:
        out.add_edge(e["From"], e["To"], weight=e["Weight"])
    both = nx.MultiGraph()  # not MultiGraph(out), which merges edges in both directions
    both.add_nodes_from(out)
    both.add_edges_from(out.edges(data=True))
    # NetworkX's closeness follows edges backwards, and takes one of parallel edges.
    lightest = {True: nx.DiGraph(), False: nx.Graph()}
    for directed, g in lightest.items():
        g.add_nodes_from(out)
        for a, b, w in out.edges(data="weight"):
            g.add_edge(a, b, weight=min(w, g[a][b]["weight"]) if g.has_edge(a, b) else w)
    want = {
        "degree both": nx.degree_centrality(both),
        "degree out": nx.out_degree_centrality(out),
        "degree in": nx.in_degree_centrality(out),
        "betweenness both": nx.betweenness_centrality(both),
        "betweenness out": nx.betweenness_centrality(out),
        "betweenness in": nx.betweenness_centrality(out.reverse()),
        "closeness both": nx.closeness_centrality(both),
        "closeness out": nx.closeness_centrality(out.reverse()),
        "closeness in": nx.closeness_centrality(out),
        "betweenness both weighted": nx.betweenness_centrality(both, weight="weight"),
        "betweenness out weighted": nx.betweenness_centrality(out, weight="weight"),
        "closeness both weighted": nx.closeness_centrality(lightest[False], distance="weight"),
        "closeness out weighted": nx.closeness_centrality(lightest[True].reverse(), distance="weight"),
    }
    wants[name] = {what: [scores[i] for i in range(graph["nodes"])] for what, scores in want.items()}
json.dump(wants, sys.stdout)
