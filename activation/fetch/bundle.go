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

// CodeBundle is the code of the error for a bundle of a foreign trust domain that is invalid, or
// that cannot replace the delivered bundle. The error is transient, because a provider that has
// lost its state will soon fetch a newer bundle.
var CodeBundle = hostapi.Code{Name: "bundle", Class: hostapi.Transient}

// checkBundle compares a new bundle of a foreign trust domain with the delivered one. It returns an
// error if the new bundle would reduce trust, or is older.
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
