# A private key is found in every place, and never shown. (None of these is a real one.)
{ base, merge, ... }:
merge base {
  trust.roots = [
    ./private.txt
    "-----BEGIN CERTIFICATE-----\n-----BEGIN EC PRIVATE KEY-----\n"
  ];
  trust.signingKeys = [
    "golden-1:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=="
  ];
  hosts.alpha.sshHostKey = "-----BEGIN OPENSSH PRIVATE KEY-----\n";
  hosts.beta.users = [ "AGE-SECRET-KEY-1QQQQQQQQQQQQQQQQQQ" ];
  hosts.beta.callers.node = [ "AGE-SECRET-KEY-1QQQQQQQQQQQQQQQQQQ" ];
  users.ann = "AGE-SECRET-KEY-1QQQQQQQQQQQQQQQQQQ";
  services.wiki.host = "AGE-SECRET-KEY-1QQQQQQQQQQQQQQQQQQ";
  services.wiki.hosts = [ "alpha" ];
  services.wiki.password = "AGE-SECRET-KEY-1QQQQQQQQQQQQQQQQQQ";
}
