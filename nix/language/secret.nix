# The record of a secret that a provider makes, and of who reads it.
let
  inherit (builtins) isPath;
  inherit (import ./types)
    between
    default
    enum
    listOf
    of
    record
    required
    scalar
    ;
  inherit (import ./formats)
    flag
    mode
    name
    strings
    unit
    ;

  reader = record "a reader" {
    service = of "service that has it, on each of its hosts: files of its `user`" name;
    host = of "host that has it itself: files of root" name;
    overlap =
      of "it accepts two, in the files `<secret>` and `<secret>.other`, the second empty most of the time: when the secret is replaced, it has the next one before anybody uses that, and the former one after"
        flag;
    mode = default "permissions of what is secret" "0400" mode;
    restart = of "unit to restart when it was fetched anew; with `overlap` three times in a rotation" unit;
    dependsOn = of "needs of its hosts that must be fulfilled first" strings;
  };
in
record "a secret" {
  generate = required "what it is: text, or a key pair, whose public half is in the file `<secret>.pub`" "\"password\"" (enum [
    "password"
    "hex"
    "age"
    "ssh"
    "wireguard"
  ]);
  length = default "characters of text; 32 of a password and 64 of hex unless written" null (
    between 16 1024 "characters"
  );
  readers =
    required "who has it; delivered as `needs/secret-<service>-<secret>/current/<secret>`, or `needs/secret-node-<secret>/…`"
      "[ { service = \"wiki\"; } ]"
      (listOf reader);
  public =
    default
      "file that `florctl secret record` writes the public half to, for `public.<secret>` of the cluster"
      null
      (scalar {
        want = "the path of a file";
        json = null;
        hint = "write it without quotes: ./public.json; it need not be there yet";
        zero = null;
        ok = isPath;
      });
  generation =
    default "raised when it may be known to others: all readers get another, and the old one ends" 1
      (between 1 1000000 "a generation");
  rotate = default "days after which it is replaced; never, unless written" 0 (
    between 0 3650 "days"
  );
  overlap =
    default "seconds for which readers with `overlap` have the next one before it is used, and the former one after; they fetch four times in it"
      3600
      (between 60 43200 "seconds");
}
