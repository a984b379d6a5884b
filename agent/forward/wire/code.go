package wire

import (
	"fmt"
	"strconv"
	"strings"
)

// Code is the reason for resetting a stream or closing a connection. Codes are part of the
// protocol: a number is never reused, and its meaning never changes. New codes are added at the
// end.
type Code uint64

const (
	Done         Code = 0  // no error: the connection is no longer used
	Reset        Code = 1  // the TCP connection at the other end was reset
	Denied       Code = 2  // the allow list does not let the caller connect
	NotPublished Code = 3  // the target is not published by this host
	Refused      Code = 4  // the upstream refused the connection
	Unreachable  Code = 5  // the upstream could not be reached in time
	BadPreamble  Code = 6  // the preamble is malformed or of an unknown version
	Expired      Code = 7  // an SVID of the connection has expired: connect again
	Stopping     Code = 8  // the forwarder is stopping and did not serve the stream: try again
	Untrusted    Code = 9  // the peer's certificate is not trusted, or is no longer trusted
	Busy         Code = 10 // a limit of the caller, this host or the upstream is reached: try later
	Foreign      Code = 11 // the upstream's socket does not belong to the account of the service
	OverLimit    Code = 12 // a limit of the topology for the caller or the service is reached: try later
	NoRoute      Code = 13 // the relay has no connection to the host at the moment
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
	NoRoute:      "no-route",
}

// Unserved returns the text that tells the peer, when a connection is closed, which of its streams
// were not served. They are the stream with the given QUIC stream ID, and all streams with higher
// IDs. The peer may open them again on another connection, as after GOAWAY in HTTP/3 (RFC 9114,
// section 5.2).
func Unserved(first int64) string { return unserved + strconv.FormatInt(first, 10) }

// ParseUnserved returns the stream ID in a reason text that Unserved has returned. It returns false
// for any other text.
func ParseUnserved(reason string) (first int64, ok bool) {
	digits, ok := strings.CutPrefix(reason, unserved)
	if !ok {
		return 0, false
	}
	n, err := strconv.ParseUint(digits, 10, 62)
	return int64(n), err == nil
}

const unserved = "unserved from "

// String returns the name of the code that logs and counters use.
func (c Code) String() string {
	if c < Code(len(names)) {
		return names[c]
	}
	return fmt.Sprintf("code-%d", uint64(c))
}
