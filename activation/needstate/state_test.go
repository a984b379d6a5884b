package needstate

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/internal/hostdir"
	"github.com/florete/florete/internal/unixtime"
)

var (
	now       = time.Unix(1_800_000_000, 500)
	transient = hostapi.Errorf(hostapi.CodeUnavailable, "down")
	denied    = hostapi.Errorf(hostapi.CodeNotGranted, "no")
	invalid   = hostapi.Errorf(hostapi.CodeMalformed, "what")
)

// observed returns the observation of an unchanged need, at a time after now.
func observed(after time.Duration) Observed {
	n := document.Need{ID: "a", Generation: 2, Renew: document.Renew{AtPercent: 66}}
	return Observed{Need: n, Digest: "d", Manifest: "m", Present: true, Now: now.Add(after)}
}

func fulfilled(lifetime time.Duration) State {
	var s State
	v := observed(0)
	s.Reconcile(v)
	s.Begin(v)
	s.Fulfil(v, "forge", hostapi.Answer{Expires: v.Now.Add(lifetime).Unix()})
	return s
}

func failed(e *hostapi.Error) State {
	var s State
	v := observed(0)
	s.Reconcile(v)
	s.Begin(v)
	s.Fail(v, "forge", e, Backoff{})
	return s
}

func due(t *testing.T, s State, r document.Renew) time.Duration {
	t.Helper()
	at, ok := s.Due(r)
	if !ok {
		return -1
	}
	return at.Sub(now)
}

func TestRenewalIsDue(t *testing.T) {
	day := 24 * time.Hour
	for name, c := range map[string]struct {
		lifetime    time.Duration
		renew       document.Renew
		least, most time.Duration
	}{
		"percent":              {100 * time.Hour, document.Renew{AtPercent: 66}, 62 * time.Hour, 66 * time.Hour},
		"every":                {100 * time.Hour, document.Renew{Interval: 3600}, 57 * time.Minute, time.Hour},
		"the earlier":          {day, document.Renew{AtPercent: 50, Interval: 3600}, 57 * time.Minute, time.Hour},
		"never":                {0, document.Renew{}, -1, -1},
		"never, but it ends":   {day, document.Renew{}, day - time.Second, day},
		"later than the end":   {time.Hour, document.Renew{Interval: 86400}, time.Hour - time.Second, time.Hour},
		"percent of no end":    {0, document.Renew{AtPercent: 66}, -1, -1},
		"percent over hundred": {day, document.Renew{AtPercent: 400}, day - time.Second, day},
		"ended when it came":   {-time.Hour, document.Renew{AtPercent: 66}, time.Second, time.Second},
	} {
		var s State
		v := observed(0)
		v.Need.Renew = c.renew
		expires := int64(0)
		if c.lifetime != 0 {
			expires = now.Add(c.lifetime).Unix()
		}
		s.Fulfil(v, "forge", hostapi.Answer{Expires: expires})
		if got := due(t, s, c.renew); got < c.least-time.Second || got > c.most {
			t.Errorf("%s: due after %s, want %s to %s", name, got, c.least, c.most)
		}
	}
}

// TestRenewalChanges checks that a manifest with an earlier renewal takes effect at once.
func TestRenewalChanges(t *testing.T) {
	s := fulfilled(100 * time.Hour)
	if got := due(t, s, document.Renew{AtPercent: 10}); got > 10*time.Hour {
		t.Errorf("due after %s, want 10h", got)
	}
	v := observed(0)
	v.Need.Renew = document.Renew{}
	s.Reconcile(v)
	if got := due(t, s, v.Need.Renew); got < 99*time.Hour {
		t.Errorf("due after %s, want the end", got)
	}
}

func TestReconcile(t *testing.T) {
	for name, c := range map[string]struct {
		s    State
		edit func(*Observed)
		want hostdir.NeedStatus
		now  bool // due at once
	}{
		"unchanged":                 {fulfilled(time.Hour), func(v *Observed) {}, hostdir.NeedFulfilled, false},
		"other need":                {fulfilled(time.Hour), func(v *Observed) { v.Digest = "e" }, hostdir.NeedWaiting, true},
		"files are gone":            {fulfilled(time.Hour), func(v *Observed) { v.Present = false }, hostdir.NeedWaiting, true},
		"other manifest, same need": {fulfilled(time.Hour), func(v *Observed) { v.Manifest = "n" }, hostdir.NeedFulfilled, false},
		"denied":                    {failed(denied), func(v *Observed) {}, hostdir.NeedDenied, false},
		"denied, other manifest":    {failed(denied), func(v *Observed) { v.Manifest = "n" }, hostdir.NeedWaiting, true},
		"invalid":                   {failed(invalid), func(v *Observed) {}, hostdir.NeedInvalid, false},
		"invalid, other manifest":   {failed(invalid), func(v *Observed) { v.Manifest = "n" }, hostdir.NeedWaiting, true},
		"waiting, other manifest":   {failed(hostapi.Errorf(hostapi.CodeBusy, "later")), func(v *Observed) { v.Manifest = "n" }, hostdir.NeedWaiting, false},
		"unreachable":               {failed(transient), func(v *Observed) {}, hostdir.NeedWaiting, false},
		"it is elsewhere now":       {failed(transient), func(v *Observed) { v.Manifest = "n" }, hostdir.NeedWaiting, true},
		"another root":              {failed(hostapi.Errorf(hostapi.CodeUntrustedTransient, "")), func(v *Observed) { v.Manifest = "n" }, hostdir.NeedWaiting, true},
		"of a foreign root":         {fulfilled(time.Hour), func(v *Observed) { v.Foreign = true }, hostdir.NeedWaiting, true},
		"new":                       {State{}, func(v *Observed) {}, hostdir.NeedWaiting, true},
	} {
		v := observed(0)
		c.edit(&v)
		c.s.Reconcile(v)
		at, ok := c.s.Due(v.Need.Renew)
		if c.s.State != c.want || (ok && !at.After(v.Now)) != c.now {
			t.Errorf("%s: %s, due %v %s, want %s, at once: %v", name, c.s.State, ok, at, c.want, c.now)
		}
	}
}

func TestRetryLocal(t *testing.T) {
	s := failed(invalid)
	if s.RetryLocal(now); s.State != hostdir.NeedInvalid {
		t.Errorf("refused by a provider: %s", s.State)
	}
	s.Provider = ""
	if s.RetryLocal(now); s.State != hostdir.NeedWaiting {
		t.Errorf("refused here: %s", s.State)
	}
}

// TestLocalDenial checks that a denial by this host itself is not followed by a wait of an hour,
// unlike a provider's denial.
func TestLocalDenial(t *testing.T) {
	for provider, most := range map[string]time.Duration{"": 5 * time.Minute, "forge": Slow + Slow/20} {
		var s State
		v := observed(0)
		s.Begin(v)
		s.Fail(v, provider, denied, Backoff{})
		wait := s.Next.Sub(v.Now)
		if s.State != hostdir.NeedDenied || wait > most || provider != "" && wait < Slow {
			t.Errorf("denied by %q: %s, next in %s, want at most %s", provider, s.State, wait, most)
		}
	}
}

// TestClockJumps checks that no jump of the clock prolongs the wait.
func TestClockJumps(t *testing.T) {
	year := 365 * 24 * time.Hour
	for _, e := range []*hostapi.Error{transient, denied} {
		for _, jump := range []time.Duration{-year, -time.Hour, -2 * time.Second, 0, time.Hour, year} {
			s := failed(e)
			meant := s.Next.Sub(now)
			v := observed(jump)
			s.Reconcile(v)
			if left := s.Next.Sub(v.Now); left > meant+time.Second || jump <= 0 && left < meant-2*time.Second {
				t.Errorf("%s, clock by %s: %s left of %s", e.Kind, jump, left, meant)
			}
		}
	}
	s := fulfilled(24 * time.Hour)
	v := observed(-year)
	s.Reconcile(v)
	if at, _ := s.Due(document.Renew{Interval: 3600}); at.Sub(v.Now) > time.Hour+time.Second {
		t.Errorf("renewed after %s, want an hour", at.Sub(v.Now))
	}
	s = failed(transient)
	s.Next = unixtime.Of(now.Add(year))
	if s.Reconcile(observed(0)); s.Next.Sub(now) > longest {
		t.Errorf("a wait that nothing made: %s", s.Next.Sub(now))
	}
}

// TestClockJumpsDuringAttempt checks that what an attempt plans at its end does not depend on the
// clock at its beginning.
func TestClockJumpsDuringAttempt(t *testing.T) {
	year := 365 * 24 * time.Hour
	for _, jump := range []time.Duration{-year, -time.Hour, 0, time.Hour, year} {
		for _, e := range []*hostapi.Error{nil, transient, denied} {
			s, name := fulfilled(24*time.Hour), "fulfilled"
			s.Begin(observed(0))
			v := observed(jump)
			if e == nil {
				s.Fulfil(v, "forge", hostapi.Answer{Expires: v.Now.Add(24 * time.Hour).Unix()})
			} else {
				name = string(e.Kind)
				s.Fail(v, "forge", e, Backoff{})
			}
			planned, _ := s.Due(v.Need.Renew)
			s.Reconcile(v)
			if at, _ := s.Due(v.Need.Renew); at.Before(v.Now) || !at.Equal(planned) {
				t.Errorf("clock by %s, %s: due after %s, planned after %s", jump, name, at.Sub(v.Now), planned.Sub(v.Now))
			}
		}
	}
}

// TestClockJumpsDuringPass checks that a need is not due because the clock was set back after the
// pass over all needs has read it.
func TestClockJumpsDuringPass(t *testing.T) {
	now := time.Now().Add(16 * time.Hour)
	v := observed(0)
	n := Need{Need: v.Need, Digest: v.Digest, table: &Table{Manifest: v.Manifest}, seen: seen{at: now, present: true}}
	v.Now = now
	n.State.Begin(v)
	n.State.Fulfil(v, "forge", hostapi.Answer{Expires: now.Add(8 * time.Hour).Unix()})
	planned := func(at time.Time, ok bool) (time.Time, bool) { return at, ok }
	next := n.Request(now, planned, func(int) { t.Error("requested again") })
	if at, _ := n.State.Due(n.Renew); !next.Equal(at) || at.Before(now.Add(5*time.Hour)) {
		t.Errorf("due %s from now, want %s", next.Sub(now), at.Sub(now))
	}
}

func TestClockChangedRetriesWhatWaitsForTheClock(t *testing.T) {
	clock := hostapi.Errorf(hostapi.CodeClock, "set the clock")
	for _, e := range []*hostapi.Error{clock, transient, denied, invalid} {
		s := failed(e)
		before := s
		s.ClockChanged(now)
		switch at, ok := s.Due(document.Renew{}); {
		case e != clock && s != before:
			t.Errorf("%s (%s): %+v, want it as it was: %+v", e.Kind, e.Code, s, before)
		case e == clock && (!ok || at.After(now) || s.Attempts != 0):
			t.Errorf("%s (%s): due %v, %s, after %d attempts, want at once", e.Kind, e.Code, ok, at, s.Attempts)
		}
	}
	s := fulfilled(time.Hour)
	if s.ClockChanged(now); s.State != hostdir.NeedFulfilled {
		t.Errorf("what is fulfilled is %s", s.State)
	}
}

func TestUsable(t *testing.T) {
	s := fulfilled(time.Hour)
	if !s.Usable("d", now) || s.Usable("e", now) || s.Usable("d", now.Add(2*time.Hour)) {
		t.Error("want usable for its own digest, for an hour")
	}
	s.Fail(observed(0), "forge", transient, Backoff{})
	if !s.Usable("d", now) {
		t.Error("a renewal that failed makes what is there no worse")
	}
}

func TestSaveAndLoad(t *testing.T) {
	l := hostdir.Layout(t.TempDir())
	if s, err := l.NeedState("a"); err != nil || s != (hostdir.NeedState{}) {
		t.Fatalf("%+v %v", s, err)
	}
	for _, s := range []State{fulfilled(time.Hour), failed(denied), failed(transient)} {
		if err := s.Save(l, "a"); err != nil {
			t.Fatal(err)
		}
		back, err := l.NeedState("a")
		if err != nil {
			t.Fatal(err)
		}
		if late := back.Next.Sub(s.Next.Time); late < 0 || late >= time.Second {
			t.Errorf("next is %s later, want rounded up to seconds", late)
		}
	}
}

// TestAgeOfASecret checks that the age is recorded for a secret that rotates, from the last answer
// if the rotation is new in the topology, and that otherwise releases without rotation can read the
// state.
func TestAgeOfASecret(t *testing.T) {
	var s State
	fulfil := func(after time.Duration, rotate int, values map[string]string) {
		v := observed(after)
		v.Need.Renew.Rotate = rotate
		s.Fulfil(v, "forge", hostapi.Answer{Values: values})
	}
	const day = 24 * 3600
	for _, c := range []struct {
		after  time.Duration
		rotate int
		values map[string]string
		since  time.Duration // zero for none on record
	}{
		{time.Hour, 0, nil, 0},
		{2 * time.Hour, day, nil, time.Hour},
		{3 * time.Hour, day, nil, time.Hour},
		{4 * time.Hour, 0, nil, 0},
		{5 * time.Hour, 0, map[string]string{hostapi.ValueRotation: "1"}, 5 * time.Hour},
		{6 * time.Hour, 0, map[string]string{hostapi.ValueRotation: "1"}, 5 * time.Hour},
	} {
		fulfil(c.after, c.rotate, c.values)
		want := unixtime.Time{}
		if c.since > 0 {
			want = unixtime.Of(now.Add(c.since).Truncate(time.Second))
		}
		if !s.Rotated.Equal(want.Time) {
			t.Errorf("after %s: rotated %s, want %s", c.after, s.Rotated, want)
		}
	}
}

// FuzzState checks that a state is unchanged after reading and writing, and leads only to waits
// that the rules allow.
func FuzzState(f *testing.F) {
	for _, s := range []State{fulfilled(time.Hour), failed(denied), failed(invalid)} {
		b, err := json.Marshal(s.NeedState)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		read, err := hostdir.ParseNeedState(b)
		if err != nil {
			return
		}
		s := State{read}
		again, err := json.Marshal(s.NeedState)
		if err != nil {
			t.Fatal(err)
		}
		if back, err := hostdir.ParseNeedState(again); err != nil || !same(back, read) {
			t.Fatalf("%s\nis read back as %+v: %v", again, back, err)
		}
		s.Reconcile(observed(0))
		if s.State != hostdir.NeedFulfilled && s.Next.Sub(now) > longest {
			t.Errorf("waits %s", s.Next.Sub(now))
		}
		s.Due(document.Renew{AtPercent: 66, Interval: 900})
		s.Begin(observed(0))
		s.Fail(observed(0), "forge", transient, Backoff{})
		if s.Next.Sub(now) > 5*time.Minute {
			t.Errorf("waits %s", s.Next.Sub(now))
		}
	})
}

func same(a, b hostdir.NeedState) bool {
	if (a.Error == nil) != (b.Error == nil) || a.Error != nil && *a.Error != *b.Error {
		return false
	}
	a.Error, b.Error = nil, nil
	return a == b
}
