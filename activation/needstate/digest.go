package needstate

import (
	"encoding/json"
	"fmt"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostapi"
)

// Digest is over what makes a delivered need fulfilled.
func Digest(n document.Need) string {
	b, err := json.Marshal(struct {
		Deliver    document.Deliver `json:"deliver"`
		Generation int              `json:"generation"`
		Request    json.RawMessage  `json:"request"`
	}{n.Deliver, n.Generation, n.Request})
	if err == nil {
		b, err = hostapi.Canonical(b)
	}
	if err != nil {
		panic(fmt.Sprintf("need %s of a decoded manifest: %v", n.ID, err))
	}
	return document.Digest(b)
}
