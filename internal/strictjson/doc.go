// Package strictjson decodes JSON that this project's programs exchange and store. It refuses JSON
// that two readers could interpret differently, such as an object with duplicate keys.
package strictjson
