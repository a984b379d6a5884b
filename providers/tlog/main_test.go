package tlog

import (
	"io"
	"os"
	"testing"

	"k8s.io/klog/v2"
)

func TestMain(m *testing.M) {
	klog.LogToStderr(false) // of Tessera
	klog.SetOutput(io.Discard)
	os.Exit(m.Run())
}
