"""Learning games by self-play: what plays, learns, measures, stores and shows.

`games` is imported first because it points numba at the cache folder of these sources.
"""

import games as games
