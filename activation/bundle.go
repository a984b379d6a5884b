package activation

import (
	"cmp"
	"os"
	"path/filepath"

	"github.com/florete/florete/activation/delivery"
	"github.com/florete/florete/activation/event"
	"github.com/florete/florete/activation/fetch"
	"github.com/florete/florete/activation/needstate"
	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/internal/hostdir"
)

// deliverBundle puts the roots of the manifest in force beside an SVID that was delivered with
// other ones, without a request: the manifest alone decides trust. An SVID that is requested anew
// gets them with its answer.
func (a *activation) deliverBundle(n *needstate.Need) {
	if n.Kind != document.KindCert || n.Foreign || n.State.Digest != n.Digest {
		return
	}
	values := map[string]string{}
	for name, f := range n.Deliver.Files {
		b, err := os.ReadFile(filepath.Join(hostdir.Current(n.Dir.Path), name))
		if err != nil {
			return
		}
		values[f.Value] = string(b)
	}
	had, delivers := values["bundle"]
	values["bundle"] = fetch.Bundle(a.host.Manifest.Trust.Roots)
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
		_, err = n.Dir.Deliver(all)
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
