package wire

import (
	"fmt"
	"strconv"
	"strings"
)

// Code says why a stream was reset or a connection closed. Numbers are never
// reused and meanings never change; new ones are added at the end.
type Code uint64

const (
	Done         Code = 0  // nothing is wrong: the connection is no longer used
	Reset        Code = 1  // the TCP connection at the other end was reset
	Denied       Code = 2  // the allow list does not let the caller connect
	NotPublished Code = 3  // the target is not published here
	Refused      Code = 4  // the upstream refused the connection
	Unreachable  Code = 5  // the upstream could not be reached in time
	BadPreamble  Code = 6  // the preamble is malformed or of an unknown version
	Expired      Code = 7  // an SVID of the connection has expired: connect again
	Stopping     Code = 8  // the forwarder is stopping, and did not serve this: try again
	Untrusted    Code = 9  // the peer's certificate is not, or no longer, trusted
	Busy         Code = 10 // the caller, this host or the upstream has as much as it may: try later
	Foreign      Code = 11 // the upstream's socket belongs to another account than the service's
	OverLimit    Code = 12 // the caller or the service has as much as the topology lets it: try later
)

var names = [...]string{
	Done:         "done",
	Reset:        "reset",
	Denied:       "denied",
	NotPublished: "not-published",
	Refused:      "upstream-refused",
	Unreachable:  "upstream-unreachable",
	BadPreamble:  "bad-preamble",
	Expired:      "expired",
	Stopping:     "stopping",
	Untrusted:    "untrusted",
	Busy:         "busy",
	Foreign:      "upstream-foreign",
	OverLimit:    "over-limit",
}

// Unserved is the reason of a connection that is closed with Reset because streams were cut
// short: the QUIC number of its first stream that was not served. Those from it on may be
// opened again elsewhere, as with GOAWAY of HTTP/3 (RFC 9114 section 5.2).
func Unserved(first int64) string { return unserved + strconv.FormatInt(first, 10) }

// ParseUnserved reads the reason of a connection that was closed.
func ParseUnserved(reason string) (first int64, ok bool) {
	digits, ok := strings.CutPrefix(reason, unserved)
	if !ok {
		return 0, false
	}
	n, err := strconv.ParseUint(digits, 10, 62)
	return int64(n), err == nil
}

const unserved = "unserved from "

// String is the code's name in logs and counters.
func (c Code) String() string {
	if c < Code(len(names)) {
		return names[c]
	}
	return fmt.Sprintf("code-%d", uint64(c))
}
