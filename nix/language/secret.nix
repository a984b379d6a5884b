# The record of a generated secret, and of the services and hosts that read it.
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
    groupPath
    mode
    name
    strings
    tags
    unit
    ;

  reader = record "a reader" {
    service = of "Service that reads the secret on each of its hosts. The files belong to its `user`." name;
    host = of "Host that reads the secret itself. The files belong to root." name;
    group = of "Group of hosts, such as `\"eu/fra\"`, each of which reads the secret itself." groupPath;
    tags = of "Each host with all of these tags reads the secret itself." tags;
    overlap =
      of "The reader accepts two secrets, in the files `<secret>` and `<secret>.other`. The second is empty most of the time. During a replacement it has the next secret before anybody uses it, and the former one after."
        flag;
    mode = default "Permissions of the secret file." "0400" mode;
    restart = of "Unit to restart after the secret was fetched anew. With `overlap` that happens three times in a rotation." unit;
    dependsOn = of "Needs of its hosts that must be fulfilled first." strings;
  };
in
record "a secret" {
  generate = required "Type of the secret: a text, or a key pair whose public half is in the file `<secret>.pub`." "\"password\"" (enum [
    "password"
    "hex"
    "age"
    "ssh"
    "wireguard"
  ]);
  length =
    default "Number of characters of a text. By default 32 for a password and 64 for hex." null
      (between 16 1024 "characters");
  readers =
    required
      "Services and hosts that get the secret. A reader is a service, a host, a group of hosts or all hosts with some tags. The secret is delivered as `needs/secret-<service>-<secret>/current/<secret>` or `needs/secret-node-<secret>/…`."
      "[ { service = \"wiki\"; } ]"
      (listOf reader);
  perHost = of "Each host has a secret of its own, which its readers share. By default all hosts have the same one." flag;
  public =
    default
      "File to which `florctl secret record` writes the public half, for `public.<secret>` of the cluster. Not with `perHost`, with which each host has a key pair of its own."
      null
      (scalar {
        want = "the path of a file";
        json = null;
        hint = "write it without quotes: ./public.json; it need not be there yet";
        zero = null;
        ok = isPath;
      });
  generation =
    default
      "Raise it when the secret may be known to others. All readers get another one, and the old one ends."
      1
      (between 1 1000000 "a generation");
  rotate = default "Days after which it is replaced. 0 means never." 0 (
    between 0 3650 "days"
  );
  overlap =
    default
      "Seconds for which readers with `overlap` have the next secret before it is used, and the former one after. They fetch four times in it."
      3600
      (between 60 43200 "seconds");
}
