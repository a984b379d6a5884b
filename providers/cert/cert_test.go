package cert_test

import (
	"encoding/json"
	"testing"

	"florete"
	"florete/providers/api"
	"florete/providers/ca"
	"florete/providers/providertest"
)

var ursula = providertest.ID("node/ursula")

// body asks for the SVID of id with a new key.
func body(t *testing.T, id florete.ID) json.RawMessage {
	t.Helper()
	key, err := ca.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	csr, err := ca.NewCSR(id, key)
	if err != nil {
		t.Fatal(err)
	}
	return providertest.JSON(api.CertBody{ID: id, CSR: string(csr)})
}

func TestConformance(t *testing.T) {
	outline := providertest.ID("service/outline")
	providertest.Run(t, providertest.Suite{
		Kind: "cert", Need: "cert-service-outline", Request: map[string]any{"id": outline},
		Body: func(t *testing.T) json.RawMessage { return body(t, outline) },
	})
}

func enrolment(t *testing.T) (*providertest.Env, api.Request) {
	e := providertest.NewEnv(t, "ursula")
	e.Start()
	return e, api.Request{Need: "cert-node", Serial: providertest.Serial, Generation: 1, Body: body(t, ursula)}
}

func TestEnrol(t *testing.T) {
	e, r := enrolment(t)
	a, err := e.Stranger(ursula).Enrol(t.Context(), r, e.HostKey(ursula))
	if err != nil {
		t.Fatal(err)
	}
	t.Log(a.Values["svid"])
}
