package acl

import (
	"fmt"
	"sync/atomic"

	"golang.org/x/time/rate"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/spiffe"
)

// least is what may go at once however low a rate is: the largest datagram fits in it.
const least = 64 << 10

// budget is what one service, or one caller, may have, and has.
type budget struct {
	id    spiffe.ID
	open  atomic.Int64
	most  atomic.Int64                 // 0 is any number
	opens atomic.Pointer[rate.Limiter] // nil is any number
	bytes atomic.Pointer[rate.Limiter]
}

func (b *budget) apply(l document.Limits) {
	b.most.Store(int64(l.Connections))
	set(&b.opens, float64(l.OpensPerSecond), l.OpensPerSecond)
	set(&b.bytes, float64(l.BytesPerSecond), int(max(l.BytesPerSecond/parts, least)))
}

// set changes a rate, and keeps what of it was used.
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

// acquire counts a connection in, or returns which limit it exceeds.
func (b *budget) acquire() error {
	if n, most := b.open.Add(1), b.most.Load(); most > 0 && n > most {
		b.release()
		return fmt.Errorf("%s has %d TCP connections and UDP sessions here, which is its limit", b.id.Short(), most)
	}
	if opens := b.opens.Load(); opens != nil && !opens.Allow() {
		b.release()
		return fmt.Errorf("%s has more than %v opens a second here, which is its limit", b.id.Short(), opens.Limit())
	}
	return nil
}

func (b *budget) release() { b.open.Add(-1) }
