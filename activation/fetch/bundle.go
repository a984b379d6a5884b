package fetch

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/florete/florete"
	"github.com/florete/florete/providers/api"
)

// CodeBundle is that of the bundle of a foreign trust domain which is none, or cannot come after
// what is delivered. A provider whose state was lost has a newer one soon.
const CodeBundle = "bundle"

// checkBundle refuses what would have the host trust less, or what it trusted before.
func (h *Host) checkBundle(n florete.Need, text string) *api.Error {
	refuse := func(err error) *api.Error { return api.Errorf(api.Transient, CodeBundle, "answer: %v", err) }
	var request struct {
		TrustDomain string `json:"trustDomain"`
	}
	if err := florete.Decode(n.Request, &request); err != nil {
		return api.Errorf(api.Invalid, api.CodeMalformed, "need %q: request: %v", n.ID, err)
	}
	next, err := florete.ParseBundle(request.TrustDomain, []byte(text))
	if err != nil {
		return refuse(err)
	}
	delivered, err := florete.ReadDelivered(h.Layout.Need(n.ID), florete.FileTrustBundle)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return api.Errorf(api.Transient, CodeDisk, "%v", err)
	}
	last, err := florete.ParseBundle(request.TrustDomain, delivered)
	if err != nil {
		return nil // nothing is lost
	}
	if err := next.CheckAfter(last); err != nil {
		return refuse(fmt.Errorf("%w on this host", err))
	}
	return nil
}
