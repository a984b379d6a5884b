package tlog

import (
	"io"
	"os"
	"testing"

	"k8s.io/klog/v2"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv("FLORETE_TEST_DIES"); dir != "" {
		dies(dir)
	}
	klog.LogToStderr(false) // of Tessera
	klog.SetOutput(io.Discard)
	os.Exit(m.Run())
}
