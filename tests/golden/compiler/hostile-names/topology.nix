# No part of a name controls a terminal, and no fault shows a secret.
{
  base,
  key,
  merge,
  ...
}:
let
  esc = builtins.fromJSON ''"\u001b"'';
  rtl = builtins.fromJSON ''"\u202e"'';
  more = builtins.fromJSON ''"\u009b2J\u200e\u2066"'';
in
merge base {
  hosts."a\n  FL000 all is well" = {
    sshHostKey = key "beta";
    address = "192.0.2.2";
  };
  services."${esc}[31mred" = {
    host = "beta";
    port = 1;
  };
  users."${rtl}nimda".roles = [ "read\r\ner" ];
  roles.reader.services = [
    "wiki"
    "shell${esc}]0;title"
    "shell${more}"
  ];
  trust.signingKeys = [
    "golden-1:0123456789012345678901234567890123456789012345678901234567890123456789"
  ];
  hosts.beta.sshHostKey = "b3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAEbm9uZQAAAAAAAAABAAAAMwAAAAtzc2gtZWQyNTUxOQ";
  services.wiki.upstream = "admin:hunter2@192.0.2.7:80";
  acknowledge = null;
}
