package secret

import (
	"fmt"
	"testing"
	"time"

	"github.com/florete/florete/internal/document"
)

const day = 24 * time.Hour

// TestOverlap checks many rotations. Two readers fetch at any times, up to a third of the overlap
// apart. A reader that holds two values accepts the other reader at every moment.
func TestOverlap(t *testing.T) {
	s := spec{Request: Request{Secret: "a", Generate: "hex", Length: 32, Rotate: int64(day / time.Second), Overlap: 3600}, Generation: 1}
	begin := time.Unix(1784011430, 0)
	var r ring
	held := map[string]bool{}
	type views struct{ use, other string }
	var past []views
	const step = 5 * time.Minute
	for at := time.Duration(0); at < 5*day; at += step {
		now := begin.Add(at)
		next, changed, err := r.next(now, s)
		if err != nil {
			t.Fatal(err)
		}
		if again, changed, _ := next.next(now, s); changed || fmt.Sprint(again) != fmt.Sprint(next) {
			t.Fatalf("after %s: it changes each time it is requested", at)
		}
		if len(r) > 0 && !changed && next.until(now, s).Before(now.Add(time.Second)) {
			t.Fatalf("after %s: it is to stay until before now", at)
		}
		r = next
		v := views{r[r.at(now)].Secret, r.other(now).Secret}
		held[v.use] = true
		past = append(past, v)
		for i := max(0, len(past)-4); i < len(past); i++ {
			for j := max(0, len(past)-4); j < len(past); j++ {
				if use := past[i].use; use != past[j].use && use != past[j].other {
					t.Fatalf("after %s: a reader of %d steps ago has a secret that one of %d steps ago does not accept", at, len(past)-1-i, len(past)-1-j)
				}
			}
		}
	}
	if len(held) != 5 {
		t.Errorf("%d secrets in five days, want 5", len(held))
	}
}

// TestAge checks that without overlap, the secret is replaced as soon as its time has come, and not
// earlier.
func TestAge(t *testing.T) {
	f := newFixture(t, grant("elm", 1, Request{Secret: "a", Generate: "password", Length: 20, Rotate: 86400}), grant("oak", 1, Request{Secret: "a", Generate: "password", Length: 20, Rotate: 86400}))
	now := time.Now()
	first := f.reads(0, now)
	if again := f.reads(1, now.Add(day-time.Minute)); again["secret"] != first["secret"] {
		t.Error("rotated too early")
	}
	second := f.reads(1, now.Add(day+time.Minute))
	if second["secret"] == first["secret"] || f.reads(0, now.Add(day+2*time.Minute))["secret"] != second["secret"] {
		t.Error("not rotated by age, or not for both readers")
	}
}

// TestGeneration checks that a higher generation makes another secret, at once if no reader holds
// two values. A lower generation brings no secret back.
func TestGeneration(t *testing.T) {
	r := Request{Secret: "a", Generate: "ssh"}
	f := newFixture(t, grant("elm", 1, r), grant("oak", 1, r))
	now := time.Now()
	first := f.reads(0, now)
	// During a rollout, one reader has the next version and another the former version.
	f.policy.Grants[1].Generation = 2
	second := f.reads(1, now)
	if second["secret"] == first["secret"] || f.reads(0, now)["secret"] != second["secret"] {
		t.Error("a higher generation is no other secret, or not for all")
	}
	f.policy.Grants[1].Generation = 1
	if f.reads(1, now)["secret"] != second["secret"] {
		t.Error("a lower generation brings a former secret back")
	}
}

// TestGenerationWithOverlap checks that readers that hold two values get the next value first.
func TestGenerationWithOverlap(t *testing.T) {
	r := Request{Secret: "a", Generate: "hex", Length: 32, Overlap: 600}
	two := r
	two.Two = true
	f := newFixture(t, grant("elm", 1, two), grant("oak", 1, r))
	now := time.Now()
	first := f.reads(1, now)["secret"]
	if other := f.reads(0, now)["other"]; other != "" {
		t.Error("another before any rotation")
	}
	f.policy.Grants = []document.Grant{grant("elm", 2, two), grant("oak", 2, r)}
	if f.reads(1, now)["secret"] != first {
		t.Error("a reader has the next one before those that hold two")
	}
	next := f.reads(0, now)["other"]
	if next == "" || next == first || f.reads(0, now)["secret"] != first {
		t.Error("one that holds two has no other, or no longer the one in use")
	}
	later := now.Add(11 * time.Minute)
	if f.reads(1, later)["secret"] != next || f.reads(0, later)["secret"] != next || f.reads(0, later)["other"] != first {
		t.Error("after the overlap: the next one is not in use, or the former one has ended too early")
	}
	if f.reads(0, now.Add(21*time.Minute))["other"] != "" {
		t.Error("the former one never ends")
	}
}

// TestReplicasDiffer checks that if the policies of two replicas want different lengths at one
// generation, the replica with the older policy keeps the secret that the other made.
func TestReplicasDiffer(t *testing.T) {
	now := time.Unix(1784011430, 0)
	lags := spec{Request: Request{Secret: "a", Generate: "hex", Length: 32}, Generation: 1, Serial: 1000}
	leads := lags
	leads.Length, leads.Serial = 64, 1001
	var r ring
	for i, s := range []spec{lags, leads, lags, leads, lags} {
		next, changed, err := r.next(now, s)
		if err != nil || changed != (i < 2) {
			t.Fatalf("request %d: changed %t, %v", i, changed, err)
		}
		r = next
	}
	lags.Generation++
	if _, changed, _ := r.next(now, lags); !changed {
		t.Error("a higher generation replaces it, whatever the policy")
	}
}
