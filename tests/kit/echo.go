package kit

import (
	"io"
	"net"
)

// Accept accepts connections until the listener is closed. It calls serve with each connection in a
// new goroutine, and closes the connection when serve returns.
func Accept(l net.Listener, serve func(net.Conn)) {
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			defer conn.Close()
			serve(conn)
		}()
	}
}

// Echo sends back everything that it reads from conn, until the peer stops sending.
func Echo(conn net.Conn) {
	_, _ = io.Copy(struct{ io.Writer }{conn}, struct{ io.Reader }{conn}) // splice(2) would take a pipe for each connection
}
