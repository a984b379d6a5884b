// Package strictjson decodes JSON that programs of this project wrote. It refuses all JSON that two
// readers could interpret differently, such as an object with duplicate keys.
package strictjson
