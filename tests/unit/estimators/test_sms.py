"""From raw text messages to a receipt, as a pipeline of scikit-learn in ten lines."""

from __future__ import annotations

from oracles.batches import real


def test_sms_spam_in_ten_lines() -> None:
    path = real("sms.tsv.gz")
    import pandas as pd
    from sklearn.feature_extraction.text import HashingVectorizer
    from sklearn.pipeline import make_pipeline

    from ftprl import FTPRLClassifier

    sms = pd.read_csv(path, sep="\t", names=["label", "text"], quoting=3)
    vectorizer = HashingVectorizer(n_features=2**18, alternate_sign=False, norm=None, binary=True)
    pipeline = make_pipeline(vectorizer, FTPRLClassifier(receipt=True))
    pipeline.fit(sms.text, sms.label)
    certificate = pipeline[-1].certificate_
    assert pipeline[-1].progressive_loss_ < 0.07  # the base rate alone has 0.39
    assert certificate.rounds == len(sms) == 5574
    assert certificate.regret <= certificate.bound * (1 + 1e-12)
    assert certificate.beaten_length is not None
