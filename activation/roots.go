package activation

import (
	"cmp"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/florete/florete/activation/delivery"
	"github.com/florete/florete/activation/event"
	"github.com/florete/florete/activation/fetch"
	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/internal/hostdir"
	"github.com/florete/florete/internal/trust"
)

// rootEvery is the interval, give or take a half, at which a host looks whether its providers of certificates
// issue below a newer root, while an SVID leads to one that is to be replaced. The half spreads
// the renewals of a cluster's hosts.
const rootEvery = 2 * time.Minute

// deliverBundle puts the roots of the manifest in force beside an SVID that was delivered with
// other ones, without a request: the manifest alone decides trust. An SVID that is requested anew
// gets them with its answer.
func (a *activation) deliverBundle(n *need) {
	if n.Kind != document.KindCert || n.foreign || n.state.Digest != n.digest {
		return
	}
	values := map[string]string{}
	for name, f := range n.Deliver.Files {
		b, err := os.ReadFile(filepath.Join(hostdir.Current(n.dir.Path), name))
		if err != nil {
			return
		}
		values[f.Value] = string(b)
	}
	had, delivers := values["bundle"]
	values["bundle"] = fetch.Bundle(a.set.Manifest.Trust.Roots)
	if !delivers || had == values["bundle"] {
		return
	}
	uid, gid, err := a.owner(a.deliverTo(n.Need))
	var all map[string]delivery.File
	if err == nil {
		var bad *hostapi.Error
		if all, bad = files(n.Need, values, uid, gid); bad != nil {
			err = bad
		}
	}
	if err == nil {
		_, err = n.dir.Deliver(all)
	}
	if err != nil {
		a.report(event.Event{Event: event.Disk, Need: n.ID, Message: "bundle: " + err.Error()})
		return
	}
	a.report(event.Event{Event: event.Bundle, Need: n.ID})
}

// deliverTo returns how a need is delivered: with the owner that activation has where it names none.
func (a *activation) deliverTo(n document.Need) document.Deliver {
	d := n.Deliver
	if n.Kind == document.KindCert || n.Kind == document.KindJWT {
		d.Owner = cmp.Or(d.Owner, a.Owner)
	}
	return d
}

// superseded reports whether the SVID that is delivered for a need leads to a root that another
// one is to replace.
func (a *activation) superseded(n *need) bool {
	if n.Kind != document.KindCert || n.state.State != hostdir.NeedFulfilled || len(a.set.Manifest.Trust.Roots) < 2 {
		return false
	}
	d, err := hostdir.LoadDelivered(n.dir.Path, a.set.Manifest.TrustDomain)
	return err == nil && d != nil && a.set.Roots.Superseded(d.Chain)
}

// rootsMove returns when to look again whether providers issue below a newer root; false where no
// SVID leads to a root that is to be replaced.
func (a *activation) rootsMove(now time.Time) (time.Time, bool) {
	if !slices.ContainsFunc(a.needs, a.superseded) {
		return time.Time{}, false
	}
	return now.Add(rootEvery/2 + rand.N(rootEvery)), true
}

// renewBelow makes SVIDs due that lead to an older root than those which their providers issue
// now: at once, since hosts look at different times. A provider that still issues below the older
// root would answer some of the requests.
func (a *activation) renewBelow(answers map[string]hostapi.CRL, now time.Time) {
	for _, n := range a.needs {
		if n.busy || !a.superseded(n) {
			continue
		}
		d, err := hostdir.LoadDelivered(n.dir.Path, a.set.Manifest.TrustDomain)
		if err != nil || d == nil {
			continue
		}
		moved := 0
		for _, p := range n.Providers {
			issuer, err := trust.ParseCertificates([]byte(answers[p].Issuer))
			switch {
			case err != nil: // it did not answer
			case a.set.Roots.CheckIssuing(issuer[0], now) == nil && a.set.Roots.Precedes(d.Chain, issuer[:1]):
				moved++
			default:
				moved -= len(n.Providers)
			}
		}
		if moved > 0 {
			n.state.Renew(now)
			a.save(n)
		}
	}
}
