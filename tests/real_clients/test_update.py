"""The daily update: the one event that nobody can ask for.

Each organization has a minute of the day for it. The operator may choose an organization's id, so the test chooses one
whose minute comes next, when the tests are loaded, and looks what came of it after the others.
"""

import functools
import hashlib
import time
import unittest
import uuid

from platform_under_test import eventually, platform

# The start of the next minute, and what it takes.
SECONDS = 60 + 30

MINUTES_PER_DAY = 1440


def minute_of(oid):
    """The minute of the day, in UTC, in which the platform updates this organization."""
    parts = [b"daily", str(oid).encode()]
    text = b"".join(len(part).to_bytes(8, "big") + part for part in parts)
    return int.from_bytes(hashlib.sha256(text).digest()[:4], "big") % MINUTES_PER_DAY


def organization_of(minute):
    return next(oid for oid in iter(uuid.uuid4, None) if minute_of(oid) == minute)


@functools.cache
def organizations():
    """Two that are subscribed: one whose minute comes next, and one whose minute is hours away."""
    # With ten seconds left of this minute there is no telling which one the subscription makes.
    next_minute = int(time.time() + 10) // 60 + 1
    due = platform().organization("due", organization_of(next_minute % MINUTES_PER_DAY))
    later = platform().organization("later", organization_of((next_minute + 700) % MINUTES_PER_DAY))
    due.subscribe()
    later.subscribe()
    return due, later


def load_tests(loader, tests, pattern):
    """What unittest calls before it runs anything: the minute passes while others are tested."""
    organizations()
    return tests


class Update(unittest.TestCase):
    def test_every_subscribed_organization_is_updated_in_its_minute_of_the_day(self):
        due, later = organizations()
        eventually("the update", lambda: due.events("update"), SECONDS)
        (event,) = due.events("update")
        self.assertEqual((event["data"], event["config"]), ({}, {}))
        self.assertEqual(later.events("update"), [])
