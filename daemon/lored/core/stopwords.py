"""Words that carry no content in a query. Data only.

English function and question words (measured on LoCoMo: leaving them in costs 5 points of
R@10), the remains of contractions, and the commonest Chinese and Japanese function bigrams.
They are dropped from queries, never from what is indexed, so a phrase still finds them.
"""

from typing import Final

_ENGLISH: Final = """
a about above after again against all also am an and any are aren as at be because been
before being below between both but by can cannot could couldn did didn do does doesn doing
don down during each either else ever few for from further get gets got had hadn has hasn
have haven having he her here hers herself him himself his how however i if in into is isn
it its itself just let ll may me might mine more most much must my myself no nor not now of
off on once one only or other our ours ourselves out over own per please quite rather re
really same shall she should shouldn since so some such tell than that the their theirs
them themselves then there these they this those though through thus to too under until
unless up upon us ve very via was wasn we were weren what whatever when where whether which
while who whom whose why will with within without won would wouldn yes yet you your yours
yourself yourselves
"""

_CHINESE_JAPANESE: Final = """
什么 怎么 为什 哪个 哪些 哪里 我们 你们 他们 这个 那个 一个 这些 那些 没有 可以 是不 不是
如何 时候 还是 就是 以及 或者 因为 所以 但是 如果
です ます した ました して てい いる ある こと もの から まで よう どの どう なに 何か
"""

STOPWORDS: Final[frozenset[str]] = frozenset(_ENGLISH.split() + _CHINESE_JAPANESE.split())
