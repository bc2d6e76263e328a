"""Expressions: the filter language, the same in Python (`where=`), in the shell and in the web page.

Names, literals, comparisons, `and`, `or`, `not`, `in`, `is none` and `len()`. A text is parsed, never run as Python.
Nothing here knows files or where a batch came from.

>>> import numpy as np
>>> from recordkit.columns import Batch, BytesColumn
>>> batch = Batch({"label": np.array([1, 7, 9]), "name": BytesColumn.of(["cat", "dog", "cow"])}, 3)
>>> Expression('label > 5 and name != "dog"').mask(batch)
array([False, False,  True])
"""

from ._expression import Expression

__all__ = ["Expression"]
