"""The transformer: index scores as distances in the form that scikit-learn takes."""

import pickle
from typing import Any

import numpy as np
import pytest
import scipy.sparse
from sklearn.base import clone
from sklearn.cluster import DBSCAN, SpectralClustering
from sklearn.manifold import Isomap
from sklearn.neighbors import KNeighborsClassifier
from sklearn.utils.estimator_checks import parametrize_with_checks

import cocite
from cocite.errors import UsageError
from cocite.integrations.sklearn import LinkNeighbors

PAGES = 60
ROWS = "rows are new pages with these links, and not those of the matrix that it was fitted to"
EXPECTED = {
    "check_methods_subset_invariance": f"some of the {ROWS}",
    "check_methods_sample_order_invariance": f"in another order {ROWS}",
}


def web(communities: int = 3, seed: int = 1) -> Any:
    """Links mostly within communities."""
    rng = np.random.default_rng(seed)
    a, b = rng.integers(0, PAGES, (2, 900))
    near = (a % communities == b % communities) | (rng.random(900) < 0.05)
    links = np.zeros((PAGES, PAGES))
    links[a[near], b[near]] = 1
    np.fill_diagonal(links, 0)
    return scipy.sparse.csr_array(links)


@pytest.mark.long
@parametrize_with_checks(  # type: ignore[untyped-decorator]
    [LinkNeighbors(2)], expected_failed_checks=lambda estimator: EXPECTED
)
def test_link_neighbors_passes_estimator_checks(estimator: Any, check: Any) -> None:
    check(estimator)


@pytest.mark.parametrize("measure", ["neighborhood", "psimrank"])
def test_link_neighbors_kneighbors_equal_index_hits(measure: str) -> None:
    links = web()
    index = cocite.build(cocite.ingest(links), measure=measure)
    found = LinkNeighbors(4, measure=measure, n_jobs=2).fit(links)
    distances, ids = found.kneighbors()
    assert distances.shape == ids.shape == (PAGES, 4)
    similar = LinkNeighbors(4, measure=measure, mode="similarity").fit_transform(links)
    for page in range(PAGES):
        hits = index.related(page, 4)
        assert ids[page, : len(hits)].tolist() == [hit.node for hit in hits]
        expected = [1 - hit.score for hit in hits] + [1.0] * (4 - len(hits))
        np.testing.assert_allclose(distances[page], expected, rtol=0, atol=1e-15)
        row = similar[[page]]
        assert dict(zip(row.indices.tolist(), row.data.tolist(), strict=True)) == {
            hit.node: hit.score for hit in hits
        }


def test_link_neighbors_graph_includes_self_and_neighbors() -> None:
    links = web()
    graph = LinkNeighbors(4).fit_transform(links)
    assert isinstance(graph, scipy.sparse.csr_matrix)
    assert graph.shape == (PAGES, PAGES)
    np.testing.assert_array_equal(np.diff(graph.indptr), 5)
    rows = graph.indices.reshape(PAGES, 5)
    np.testing.assert_array_equal(rows[:, 0], np.arange(PAGES))
    values = graph.data.reshape(PAGES, 5)
    assert (values[:, 0] == 0).all()
    assert (np.diff(values, axis=1) >= 0).all()
    assert values.max() <= 1
    ones = LinkNeighbors(4, mode="connectivity").fit_transform(links)
    np.testing.assert_array_equal(ones.indices.reshape(PAGES, 4), rows[:, :4])
    assert (ones.data == 1).all()
    names = LinkNeighbors(4).fit(links).get_feature_names_out()
    assert names[0] == "linkneighbors0"
    assert len(names) == PAGES


def test_link_neighbors_pads_lists_with_unrelated_pages() -> None:
    links = np.zeros((5, 5))
    links[0, 1] = links[2, 1] = 1  # 3 and 4 have no links
    found = LinkNeighbors(3).fit(links)
    distances, ids = found.kneighbors()
    assert ids[3].tolist() == [0, 1, 2]
    assert distances[3].tolist() == [1, 1, 1]
    assert set(ids[0].tolist()) == {1, 2, 3}
    assert distances[0, 2] == 1
    assert (distances[0, :2] < 1).all()
    assert LinkNeighbors(3, mode="similarity").fit_transform(links)[[3]].nnz == 0


def test_link_neighbors_handles_new_pages() -> None:
    links = web()
    found = LinkNeighbors(4).fit(links)
    new = np.zeros((3, PAGES))
    new[0, [3, 6, 9]] = new[1, 4] = 1
    distances, ids = found.kneighbors(new)
    index = cocite.build(cocite.ingest(links))
    for row, targets in enumerate(([3, 6, 9], [4])):
        hits = index.related_to(targets, k=4)
        assert ids[row].tolist() == [hit.node for hit in hits]
        np.testing.assert_allclose(distances[row], [1 - h.score for h in hits], atol=1e-15)
    assert ids[2].tolist() == [0, 1, 2, 3]  # without links
    graph = found.transform(new)
    assert graph.shape == (3, PAGES)
    np.testing.assert_array_equal(np.diff(graph.indptr), 5)
    similar = LinkNeighbors(4, mode="similarity").fit(links).transform(new)
    np.testing.assert_allclose(similar[[0]].data, 1 - distances[0], atol=1e-15)


def test_link_neighbors_uses_values_as_weights() -> None:
    links = web()
    links.data[:] = np.arange(1, links.nnz + 1)
    plain, weighted = (LinkNeighbors(4).fit_transform(m) for m in (web(), links))
    assert (plain != weighted).nnz
    row = links[[7]]
    assert LinkNeighbors(4).fit(links).kneighbors(row)[1].shape == (1, 4)


def test_link_neighbors_supports_pickle_and_clone() -> None:
    links = web()
    found = LinkNeighbors(4, measure="psimrank", settings={"samples": 20, "seed": 3}).fit(links)
    graph = found.transform(links)
    again = pickle.loads(pickle.dumps(found))
    assert (again.transform(links) != graph).nnz == 0
    other = clone(found).set_params(settings={"samples": 20, "seed": 4}).fit_transform(links)
    assert (other != graph).nnz


def test_link_neighbors_works_with_sklearn_estimators() -> None:
    links = web()
    truth = np.arange(PAGES) % 3
    near = LinkNeighbors(10, measure="neighborhood").fit_transform(links)
    similar = LinkNeighbors(10, mode="similarity", measure="neighborhood").fit_transform(links)
    labels = SpectralClustering(
        3, affinity="precomputed", random_state=0, assign_labels="cluster_qr"
    ).fit_predict((similar + similar.T).toarray())
    for community in range(3):
        assert np.bincount(labels[truth == community]).max() >= 18
    classifier = KNeighborsClassifier(5, metric="precomputed").fit(near, truth)
    assert classifier.score(near, truth) > 0.9
    assert DBSCAN(eps=0.9, metric="precomputed").fit_predict(near).size == PAGES
    assert Isomap(n_neighbors=5, metric="precomputed").fit_transform(near).shape == (PAGES, 2)


def test_link_neighbors_refuses_invalid_input() -> None:
    links = web()
    with pytest.raises(ValueError, match=r"shape \(2, 3\); it must be square"):
        LinkNeighbors().fit(np.ones((2, 3)))
    with pytest.raises(ValueError, match="Negative values"):
        LinkNeighbors().fit(-links)
    with pytest.raises(ValueError, match="NaN"):
        LinkNeighbors().fit(np.full((3, 3), np.nan))
    with pytest.raises(UsageError, match="mode is 'far'"):
        LinkNeighbors(mode="far").fit(links)
    for bad in (0, 1.5, True, "3"):
        with pytest.raises(UsageError, match="n_neighbors is"):
            LinkNeighbors(bad).fit(links)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="at most 59"):
        LinkNeighbors().fit(links).kneighbors(n_neighbors=60)
    with pytest.raises(UsageError, match="distances need scores from 0 to 1"):
        LinkNeighbors(measure="pagesim").fit(links).kneighbors()
