"""How well intentions agree with labels that people gave to the same utterances."""

from __future__ import annotations

from typing import Any

import numpy as np


def agreement(intentions: np.ndarray, given: np.ndarray) -> dict[str, Any]:
    """Purity and mutual information of two labellings of the same n utterances.

    Args:
        intentions, given: (n,) labels of any kind.

    Returns:
        utterances: n. intentions, classes: how many of each there are.
        purity: share of the utterances that have the most frequent class of their intention; it
        only rises with the number of intentions. largest_class: what one intention would have.
        nmi: mutual information over the mean of both entropies; ami: the same adjusted for what
        random intentions of these sizes would have, 0 on average for them.
    """
    from sklearn.metrics import adjusted_mutual_info_score, normalized_mutual_info_score
    from sklearn.metrics.cluster import contingency_matrix

    table = contingency_matrix(given, intentions)  # (classes, intentions)
    return {
        "utterances": len(given),
        "intentions": table.shape[1],
        "classes": table.shape[0],
        "purity": float(table.max(axis=0).sum() / len(given)),
        "largest_class": float(table.sum(axis=1).max() / len(given)),
        "nmi": float(normalized_mutual_info_score(given, intentions)),
        "ami": float(adjusted_mutual_info_score(given, intentions)),
    }
