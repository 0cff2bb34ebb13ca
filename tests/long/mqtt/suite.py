"""Runs client_test.py of the Eclipse suite: suite.py DIRECTORY PORT. Its own `main` passes its arguments to unittest,
too."""

import sys
import unittest

sys.path.insert(0, sys.argv[1])
import client_test as suite  # noqa: E402

suite.host, suite.port = "127.0.0.1", int(sys.argv[2])
suite.topics = ("TopicA", "TopicA/B", "Topic/C", "TopicA/C", "/TopicA")
suite.wildtopics = ("TopicA/+", "+/C", "#", "/#", "/+", "+/+", "TopicA/#")
suite.nosubscribe_topics = ("test/nosubscribe",)
# This test exists, but with a name that unittest does not recognize.
suite.Test.test_will_message = suite.Test.will_message_test
unittest.main(module=suite, argv=["client_test"])
