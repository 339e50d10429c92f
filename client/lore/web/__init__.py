"""The local web view, `lore web`: a client of the socket that draws pages for one browser.

Holds no store and no state but who has entered. `entry` runs it, `gate` decides who comes in,
`pages` asks the memory and fills templates, `live` tells open pages what changed.
"""
