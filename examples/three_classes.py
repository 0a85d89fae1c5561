"""Score each class of a softmax, and find the structure that needs a second look."""

import numpy as np

import segtrust as st

NAMES = ("background", "organ", "lesion")

# A softmax output (classes, rows, columns): a clear organ, and a lesion that the model is unsure about.
rows, columns = np.mgrid[:64, :64]
organ = 9 - np.hypot(rows - 32, columns - 30) / 2.2
lesion = organ.clip(0, 4) + 3 - np.hypot(rows - 28, columns - 34) / 2.5
logits = np.stack([np.zeros_like(organ), organ, lesion])
p = np.exp(logits - logits.max(0))
p /= p.sum(0)

# Without a mask the classes are those of the argmax; the background gets no confidence.
scores = st.score_classes(p, NAMES, estimators=["sdc", "idc"])
table = scores.to_dataframe()  # one row per class; scores.rows() are the same rows without pandas
print(table.round(3).to_string(index=False))
print(f"mean SDC of the classes in the mask: {scores.case['sdc']:.3f}")

# The least confident class decides which structure a person looks at first.
first = table.sort_values("sdc").iloc[0]
print(f"review first: {first['class']} (SDC {first['sdc']:.3f})")
