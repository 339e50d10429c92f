"""What agents' hooks run: context at the start of a session, a nudge when one rests."""
