package acl

import (
	"fmt"
	"sync/atomic"

	"golang.org/x/time/rate"

	"github.com/florete/florete/internal/document"
)

// least is the minimum burst of a rate limit in bytes. It is larger than the largest datagram, so
// that a low limit cannot block datagrams forever.
const least = 64 << 10

// budget holds the limits of one service or one caller, and counts its use of them.
type budget struct {
	name  string
	open  atomic.Int64
	most  atomic.Int64                 // 0 means no limit
	opens atomic.Pointer[rate.Limiter] // nil means no limit
	bytes atomic.Pointer[rate.Limiter]
}

func (b *budget) apply(l document.Limits) {
	b.most.Store(int64(l.Connections))
	set(&b.opens, float64(l.OpensPerSecond), l.OpensPerSecond)
	set(&b.bytes, float64(l.BytesPerSecond), int(max(l.BytesPerSecond/parts, least)))
}

// set changes the rate of a limiter. The part of the old rate that has already been used stays
// counted.
func set(l *atomic.Pointer[rate.Limiter], perSecond float64, burst int) {
	is := l.Load()
	switch {
	case perSecond == 0:
		l.Store(nil)
	case is == nil:
		l.Store(rate.NewLimiter(rate.Limit(perSecond), burst))
	case is.Limit() != rate.Limit(perSecond):
		is.SetLimit(rate.Limit(perSecond))
		is.SetBurst(burst)
	}
}

// acquire counts a new connection. If the connection exceeds a limit, acquire returns an error that
// names the limit.
func (b *budget) acquire() error {
	if n, most := b.open.Add(1), b.most.Load(); most > 0 && n > most {
		b.release()
		return fmt.Errorf("%s has %d TCP connections and UDP sessions here, which is its limit", b.name, most)
	}
	if opens := b.opens.Load(); opens != nil && !opens.Allow() {
		b.release()
		return fmt.Errorf("%s has more than %v opens a second here, which is its limit", b.name, opens.Limit())
	}
	return nil
}

func (b *budget) release() { b.open.Add(-1) }
