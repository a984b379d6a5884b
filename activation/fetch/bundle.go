package fetch

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/internal/hostdir"
	"github.com/florete/florete/internal/strictjson"
	"github.com/florete/florete/internal/trust"
)

// CodeBundle is the code of an error with the bundle of a foreign trust domain: the bundle is
// invalid or cannot follow the delivered one. The error is transient, because a provider that lost
// its state soon has a newer bundle.
var CodeBundle = hostapi.Code{Name: "bundle", Class: hostapi.Transient}

// checkBundle returns an error for a bundle that would reduce trust or go back to an older state.
func (h *Host) checkBundle(n document.Need, text string) *hostapi.Error {
	refuse := func(err error) *hostapi.Error {
		return hostapi.Errorf(CodeBundle, "answer: %v", err)
	}
	var request struct {
		TrustDomain string `json:"trustDomain"`
	}
	if err := strictjson.Decode(n.Request, &request); err != nil {
		return hostapi.Errorf(hostapi.CodeMalformed, "need %q: request: %v", n.ID, err)
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
		return hostapi.Errorf(CodeDisk, "%v", err)
	}
	last, err := trust.ParseBundle(request.TrustDomain, delivered)
	if err != nil {
		return nil // there is no earlier bundle
	}
	if err := next.CheckAfter(last); err != nil {
		return refuse(fmt.Errorf("%w on this host", err))
	}
	return nil
}
