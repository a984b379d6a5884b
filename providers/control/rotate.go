package control

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"

	"github.com/florete/florete/internal/document"
	wire "github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/internal/hostreport"
	"github.com/florete/florete/internal/strictjson"
	"github.com/florete/florete/providers/server"
	"github.com/florete/florete/providers/store"
)

// CodeRotate is that of an ordered rotation in the audit log.
const CodeRotate = "rotate"

// Rotate orders another secret for a need of a host.
type Rotate struct {
	Host string `json:"host"`
	Need string `json:"need"`
}

// Ordered is the rotation that the host will request, once it has the answer to its next
// report.
type Ordered struct {
	Rotate
	Rotation int `json:"rotation"`
}

// rotate orders the rotation after the one that the host reported: the same again, before
// the host has done it, orders nothing more.
func (c *call) rotate() (any, error) {
	var o Ordered
	b, err := io.ReadAll(http.MaxBytesReader(c.w, c.r.Body, 4<<10))
	if err == nil {
		err = strictjson.Decode(b, &o.Rotate)
	}
	if err != nil {
		return nil, wire.Errorf(wire.CodeMalformed, `body: %v: want {"host":"ursula","need":"oidc-wiki"}`, err)
	}
	err = store.Update(c.r.Context(), c.Archive.Store, server.ReportPrefix+o.Host, func(e store.Entry) (store.Txn, error) { return c.order(&o, e) })
	if err == nil {
		c.row.Log(c.r.Context(), c.Logger)
	}
	return o, err
}

// order is the change to what a host reported last that orders a rotation of it.
func (c *call) order(o *Ordered, e store.Entry) (txn store.Txn, err error) {
	if e.Modified == 0 {
		return txn, wire.Errorf(wire.CodeMissingInvalid, "host %.64q has not reported to this provider: /v1/hosts has those that did", o.Host)
	}
	var received hostreport.Kept
	if err := json.Unmarshal(e.Value, &received); err != nil {
		return txn, err
	}
	report, err := received.Decode()
	if err != nil {
		return txn, fmt.Errorf("report of %s: %w", o.Host, err)
	}
	i := slices.IndexFunc(report.Needs, func(n hostreport.Need) bool { return n.ID == o.Need })
	if i < 0 {
		return txn, wire.Errorf(wire.CodeMissingInvalid, "host %s has no need %.64q: /v1/needs has those that it reported", o.Host, o.Need)
	}
	if kind := report.Needs[i].Kind; kind == document.KindCert || kind == document.KindConfig {
		return txn, wire.Errorf(wire.CodeRotationInvalid, "need %s of kind %s has no secret to rotate: run flor refetch %[1]s on %[3]s to fetch it again", o.Need, kind, o.Host)
	}
	o.Rotation = report.Needs[i].Rotations + 1
	before := received.Rotate[o.Need]
	if received.Rotate == nil {
		received.Rotate = map[string]int{}
	}
	received.Rotate[o.Need] = o.Rotation
	value, err := json.Marshal(received)
	if err != nil {
		return txn, err
	}
	c.row.Outcome, c.row.Code, c.row.Need = server.Granted, CodeRotate, o.Need
	c.row.Message = fmt.Sprintf("rotation %d of need %s is ordered of host %s", o.Rotation, o.Need, o.Host)
	c.row.Detail = map[string]string{"host": o.Host,
		"before": fmt.Sprintf("rotation %d, ordered %d", o.Rotation-1, before), "after": fmt.Sprintf("rotation %d, ordered %d", o.Rotation-1, o.Rotation)}
	return store.Txn{Then: []store.Op{store.Put(e.Key, value), c.row.Op()}}, nil
}
