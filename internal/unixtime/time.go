package unixtime

import (
	"fmt"
	"strconv"
	"time"
)

// Time is a time that is encoded in JSON as a number of Unix seconds, rounded up. The zero Time is
// encoded as 0.
type Time struct{ time.Time }

// Of converts a time to a Time, without its monotonic clock reading. Times that are stored across
// restarts can be compared only by the wall clock.
func Of(t time.Time) Time {
	if t.IsZero() {
		return Time{}
	}
	return Time{t.Round(0)}
}

// lastSecond is the last second of the year 9999, in Unix seconds. RFC 3339 cannot represent later
// times.
const lastSecond = 253402300799

// Unix returns the Time for a number of Unix seconds. For zero, it returns the zero Time.
func Unix(s int64) Time {
	if s == 0 {
		return Time{}
	}
	return Time{time.Unix(min(s, lastSecond), 0)}
}

// Add returns the time t plus the duration d.
func (t Time) Add(d time.Duration) Time { return Time{t.Time.Add(d)} }

// Seconds returns the time in Unix seconds, rounded up. For the zero Time, it returns zero.
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

// MarshalJSON encodes the time as a number of Unix seconds.
func (t Time) MarshalJSON() ([]byte, error) { return strconv.AppendInt(nil, t.Seconds(), 10), nil }

// UnmarshalJSON decodes a number of Unix seconds.
func (t *Time) UnmarshalJSON(b []byte) error {
	s, err := strconv.ParseInt(string(b), 10, 64)
	if err == nil && (s < 0 || s > lastSecond) {
		err = fmt.Errorf("time %d: want Unix seconds, at most %d", s, int64(lastSecond))
	}
	*t = Unix(s)
	return err
}
