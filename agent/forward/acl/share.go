package acl

import (
	"math"
	"time"

	"golang.org/x/time/rate"
)

const (
	// A burst is the number of bytes that a rate allows in 1/parts of a second.
	parts = 16
	// smallest is the minimum number of bytes that may be sent between two waits.
	smallest = 1 << 10
)

// Share limits the connections and bytes from one caller to one service, by the limits of both. It
// is safe for concurrent use. A nil Share does not limit bytes.
type Share struct {
	service, caller *budget // service may be nil
	// turn is held by the one stream that is waiting for its bytes. Streams of the same caller wait
	// one after the other. Each caller of a service therefore gets an equal part of the rate,
	// however many streams it has.
	turn chan struct{}
}

// Open counts a new TCP connection or UDP session towards the limits, until release is called. The
// caller must call release exactly once. If a limit is reached, Open returns an error that names
// the limit, and counts nothing.
func (s *Share) Open() (release func(), err error) {
	if err := s.caller.acquire(); err != nil {
		return nil, err
	}
	if s.service == nil {
		return s.caller.release, nil
	}
	if err := s.service.acquire(); err != nil {
		s.caller.release()
		return nil, err
	}
	return func() { s.caller.release(); s.service.release() }, nil
}

// rates returns the current byte rate limits of the caller and of the service. A nil limiter means
// no limit.
func (s *Share) rates() (caller, service *rate.Limiter) {
	if s == nil {
		return nil, nil
	}
	if s.service == nil {
		return s.caller.bytes.Load(), nil
	}
	return s.caller.bytes.Load(), s.service.bytes.Load()
}

// Most returns the maximum number of bytes that a stream may carry between two calls of Wait. For a
// nil Share, there is no maximum.
func (s *Share) Most() int { return most(s.rates()) }

func most(rates ...*rate.Limiter) int {
	most := math.MaxInt
	for _, l := range rates {
		if l != nil {
			most = min(most, max(int(l.Limit()/parts), smallest))
		}
	}
	return most
}

// Wait delays a stream that has just carried n bytes, until these bytes are within the byte rates
// of the caller and the service. It returns earlier if stop is closed. For a nil Share, it returns
// at once.
func (s *Share) Wait(stop <-chan struct{}, n int) {
	for n > 0 {
		caller, service := s.rates()
		if caller == nil && service == nil {
			return
		}
		few := min(n, most(caller, service))
		select {
		case s.turn <- struct{}{}:
			stopped := pay(stop, few, caller, service)
			<-s.turn
			if stopped {
				return
			}
		case <-stop:
			return
		}
		n -= few
	}
}

// pay waits until n bytes are within the rates. The number n is at most one burst. pay reports
// whether the wait was cut short because stop was closed.
func pay(stop <-chan struct{}, n int, rates ...*rate.Limiter) (stopped bool) {
	now, wait := time.Now(), time.Duration(0)
	for _, l := range rates {
		if l != nil {
			wait = max(wait, l.ReserveN(now, n).DelayFrom(now))
		}
	}
	if wait == 0 {
		return false
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return false
	case <-stop:
		return true
	}
}

// Allow reports whether a datagram of n bytes is within the byte rates, and counts it if so.
// Otherwise the datagram must be dropped. A nil Share allows every datagram.
func (s *Share) Allow(n int) bool {
	caller, service := s.rates()
	return (caller == nil || caller.AllowN(time.Now(), n)) && (service == nil || service.AllowN(time.Now(), n))
}
