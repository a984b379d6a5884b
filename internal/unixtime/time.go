package unixtime

import (
	"fmt"
	"strconv"
	"time"
)

// Time is wall clock time, in JSON Unix seconds rounded up, zero for none.
type Time struct{ time.Time }

// Of is t without its monotonic reading: what is kept across restarts can be
// compared with nothing but the wall clock.
func Of(t time.Time) Time {
	if t.IsZero() {
		return Time{}
	}
	return Time{t.Round(0)}
}

// lastSecond is the last that JSON has a date for (RFC 3339).
const lastSecond = 253402300799

// Unix is the time of Unix seconds, none for zero.
func Unix(s int64) Time {
	if s == 0 {
		return Time{}
	}
	return Time{time.Unix(min(s, lastSecond), 0)}
}

// Add is t later by d.
func (t Time) Add(d time.Duration) Time { return Time{t.Time.Add(d)} }

// Seconds are Unix seconds, rounded up, zero for none.
func (t Time) Seconds() int64 {
	if t.IsZero() {
		return 0
	}
	s := t.Time.Unix()
	if t.Nanosecond() > 0 {
		s++
	}
	return s
}

// MarshalJSON writes Unix seconds.
func (t Time) MarshalJSON() ([]byte, error) { return strconv.AppendInt(nil, t.Seconds(), 10), nil }

// UnmarshalJSON reads Unix seconds.
func (t *Time) UnmarshalJSON(b []byte) error {
	s, err := strconv.ParseInt(string(b), 10, 64)
	if err == nil && (s < 0 || s > lastSecond) {
		err = fmt.Errorf("time %d: want Unix seconds, at most %d", s, int64(lastSecond))
	}
	*t = Unix(s)
	return err
}
