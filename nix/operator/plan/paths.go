package plan

// A relay carries connections of others without being able to read or change them. What it learns is
// which hosts exchange data through it, when and how much. That is shown as rights of the relay's
// host: to relay at all, to relay for a host, to pass connections on to a host, and to see who talks
// to whom.

// relaying returns the right of a relay's host.
func relaying(a at) []fact { return one(Right{a.node(), "relay", "connections of other hosts"}) }

// relayFor returns the right of a relay that a host calls: to see that it does.
func relayFor(a at) []fact {
	return one(Right{"node/" + a.path[len(a.path)-2], "relay for", a.node()}, join(a.node()))
}

// uplink returns the right of a relay to which a host keeps a connection.
func uplink(a at) []fact {
	return one(Right{"node/" + shown(a.v), "pass connections on to", a.node()}, join(a.node()))
}

// talk returns the right of a relay on a path to see who uses it. What the caller reaches there is
// decided by the host at the end of the path.
func talk(a at) []fact {
	return one(Right{a.node(), "see when and how much", a.id(a.v) + " sends to " + a.id(a.up[0]["to"])})
}
