package fetch

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostdir"
	"github.com/florete/florete/internal/strictjson"
	"github.com/florete/florete/internal/trust"
	"github.com/florete/florete/providers/api"
)

// CodeBundle is that of the bundle of a foreign trust domain which is none, or cannot come after
// what is delivered. A provider whose state was lost has a newer one soon.
const CodeBundle = "bundle"

// checkBundle refuses what would have the host trust less, or what it trusted before.
func (h *Host) checkBundle(n document.Need, text string) *api.Error {
	refuse := func(err error) *api.Error { return api.Errorf(api.Transient, CodeBundle, "answer: %v", err) }
	var request struct {
		TrustDomain string `json:"trustDomain"`
	}
	if err := strictjson.Decode(n.Request, &request); err != nil {
		return api.Errorf(api.Invalid, api.CodeMalformed, "need %q: request: %v", n.ID, err)
	}
	next, err := trust.ParseBundle(request.TrustDomain, []byte(text))
	if err != nil {
		return refuse(err)
	}
	delivered, err := hostdir.ReadDelivered(h.Layout.Need(n.ID), document.FileTrustBundle)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return api.Errorf(api.Transient, CodeDisk, "%v", err)
	}
	last, err := trust.ParseBundle(request.TrustDomain, delivered)
	if err != nil {
		return nil // nothing is lost
	}
	if err := next.CheckAfter(last); err != nil {
		return refuse(fmt.Errorf("%w on this host", err))
	}
	return nil
}
