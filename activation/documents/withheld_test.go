package documents

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/internal/trust"
	"github.com/florete/florete/internal/unixtime"
	"github.com/florete/florete/nix/operator/revocation"
	"github.com/florete/florete/tests/kit"
)

// TestWithheld checks, with a provider that answers with any documents and any list that an
// operator ever signed, or with none, that a host has each version from its time due on, or a newer
// one, or finds its documents withheld. A host from which the list is withheld as well finds out
// when its list ends. A host with the newest documents raises no alarm.
func TestWithheld(t *testing.T) {
	const spacing, lifetime = time.Hour, 30 * 24 * time.Hour
	type version struct {
		document hostapi.SignedDocument
		list     trust.SignedRevocations
		serial   int64
		due      time.Time
	}
	found, allowed := 0, 0
	for seed := range uint64(30) {
		r := rand.New(rand.NewPCG(seed, 7))
		o := newOrigins(t)
		m := o.version("a")
		o.deploy(kit.Document(1, m))
		o.open()
		now := time.Now()
		var all []version
		var last *trust.Revocations
		for range 60 {
			now = now.Add(time.Duration(r.ExpFloat64() * float64(3*time.Hour)))
			if r.IntN(3) == 0 { // the operator publishes
				v := version{serial: int64(10 + 2*len(all)), due: now.Add(24 * time.Hour)}
				if r.IntN(3) == 0 { // a rollout
					v.due = v.due.Add(time.Duration(r.IntN(200)) * time.Hour)
				}
				v.due = unixtime.Of(v.due).Time
				v.document = kit.Signed(v.serial, m, o.Signing)
				next := revocation.Next(last, "demo", now, lifetime)
				next.NameDocuments(trust.NamedDocuments{Serial: v.serial, Rev: "8eeec93", Due: unixtime.Of(v.due)}, now, spacing)
				var err error
				if v.list, err = revocation.Sign(next, o.Signing); err != nil {
					t.Fatal(err)
				}
				if last, err = v.list.Open(); err != nil {
					t.Fatal(err)
				}
				all = append(all, v)
			}
			if len(all) == 0 {
				continue
			}
			for range r.IntN(3) { // what the provider says is in force, older than this host's, is refused
				var a hostapi.Artifact
				if r.IntN(3) > 0 {
					a.Documents = []hostapi.SignedDocument{all[r.IntN(len(all))].document}
				}
				if r.IntN(3) > 0 {
					a.Revocations = &all[r.IntN(len(all))].list
				}
				if a.Documents != nil || a.Revocations != nil {
					_ = o.store.Accept(t.Context(), a)
				}
			}
			list := o.store.Set().Roots.Revocations()
			has := o.store.Set().Document.Envelope.Serial
			withheld := o.layout.Withheld(m, list, now)
			overdue := list.Reported().Overdue(now) > 0
			for i, v := range all {
				known := int64(i+1) <= list.InForce()
				if known && now.After(v.due.Add(spacing)) && has < v.serial && withheld == nil {
					t.Fatalf("seed %d: serial %d in force, list %d: serial %d was due %s ago, and no alarm is raised: %+v", seed, has, list.Number, v.serial, now.Sub(v.due), list.Documents)
				}
				if !known && list != nil && now.After(v.due.Add(lifetime)) && !overdue {
					t.Fatalf("seed %d: list %d hides serial %d, and has not ended", seed, list.Number, v.serial)
				}
			}
			if newest := all[len(all)-1]; withheld != nil && has >= newest.serial {
				t.Fatalf("seed %d: the newest documents are said to be withheld: %s", seed, withheld)
			}
			if withheld != nil {
				if found++; withheld.Serial != has || now.Before(withheld.Since.Time) {
					t.Fatalf("seed %d: %+v, at %s with serial %d", seed, withheld, now, has)
				}
			} else {
				allowed++
			}
		}
		if last != nil && last.Documents != nil && len(last.Documents.Earlier) > 400 {
			t.Errorf("seed %d: %d earlier versions", seed, len(last.Documents.Earlier))
		}
	}
	if found < 50 || allowed < 50 {
		t.Errorf("%d times withheld, %d times not: the test tries too little", found, allowed)
	}
}
