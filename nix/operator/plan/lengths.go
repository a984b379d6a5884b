package plan

import (
	"math"
	"strconv"
	"strings"
)

// Durations and lengths are compared: a larger value is a wider right.

// lasting returns a right that lasts for a number of seconds. The argument zero is the duration
// that the value 0 means. A missing value means forever.
func lasting(r Right, v any, zero int64, because ...Right) fact {
	n, ok := v.(float64)
	switch {
	case !ok || n < 0:
		r.What = shown(v)
		return fact{Right: r, because: because}
	case n == 0:
		return fact{Right: r, seconds: zero, because: because}
	}
	return fact{Right: r, seconds: seconds(n), because: because}
}

func seconds(n float64) int64 {
	if n >= ever {
		return ever
	}
	return int64(n)
}

// keyLifetime returns how long a holder of a sealing key of the shared store can decrypt the
// store's content. The holder can do so even after its host is no longer a replica.
func keyLifetime(a at) []fact {
	return []fact{lasting(Right{Who: "a sealing key of the shared store", May: "be in use for"}, a.v, ever)}
}

// replica returns the right of a node that has a sealing key of the shared store.
func replica(a at) []fact {
	return one(Right{a.id(a.up[0]["id"]), "open", "the sealing key of " + a.path[2] + " providers"})
}

// refresh returns the interval at which other trust domains fetch the bundle, and so the time until
// they notice that a root was removed.
func refresh(a at) []fact {
	return []fact{lasting(Right{Who: "other trust domains", May: "trust a root that was taken away for"}, a.v, ever)}
}

// accessLog returns the right of readers of logs to see the callers of a service.
func accessLog(a at) []fact {
	service, readers := a.port(a.up[0]), "who reads the logs of "+a.host()
	because := Right{a.node(), "act as", a.id(a.up[0]["id"])}
	facts := one(Right{readers, "see", "some callers of " + service}, because)
	switch a.v {
	case "sampled":
		return facts
	case "full":
		return append(facts, one(Right{readers, "see", "every caller of " + service}, because)...)
	}
	return one(Right{readers, "see", "callers of " + service + ": " + shown(a.v)}, because)
}

// atMost returns a right that is limited by a number, such as a size.
func atMost(r Right, v any, because ...Right) fact {
	n, ok := v.(float64)
	if !ok {
		return fact{Right: Right{r.Who, r.May, shown(v)}, because: because}
	}
	return fact{Right: r, seconds: seconds(n), because: because}
}

// period formats a number of seconds for people. For zero seconds it returns the text none.
func period(v any, none string) string {
	n, ok := v.(float64)
	switch {
	case !ok || n < 0:
		return shown(v)
	case n == 0:
		return none
	}
	return duration(seconds(n))
}

// shortest is the verb of a right about the length of a secret. A smaller length permits more.
const shortest = "be as short as"

// atLeast returns the minimum length of a secret as a right.
func atLeast(who string, v any, because ...Right) fact {
	n, ok := v.(float64)
	if !ok {
		return fact{Right: Right{who, "be of length", shown(v)}, because: because}
	}
	return fact{Right: Right{Who: who, May: shortest}, seconds: math.MaxInt32 - int64(n), because: because}
}

// amount formats the number in a right that has no target, for people.
func amount(may string, n int64) string {
	switch {
	case strings.HasSuffix(may, " up to"):
		if n == ever {
			return "any number"
		}
		return strconv.FormatInt(n, 10)
	case may == soonest:
		return duration((math.MaxInt32 - n) * 86400)
	case may == shortest:
		return strconv.FormatInt(math.MaxInt32-n, 10) + " characters"
	}
	if at := end(may, n); at != "" {
		return at
	}
	return duration(n)
}
