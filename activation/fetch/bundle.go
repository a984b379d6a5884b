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

// CodeBundle is that of the bundle of a foreign trust domain which is none, or cannot come after
// what is delivered. A provider whose state was lost has a newer one soon.
var CodeBundle = hostapi.Code{Name: "bundle", Class: hostapi.Transient}

// checkBundle refuses what would have the host trust less, or what it trusted before.
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
		return nil // nothing is lost
	}
	if err := next.CheckAfter(last); err != nil {
		return refuse(fmt.Errorf("%w on this host", err))
	}
	return nil
}
