{
  base,
  key,
  merge,
  ...
}:
merge base {
  services.wiki.host = "btea";
  # Three edits are too many for a suggestion, and so are two in a short name.
  hosts.forge1 = {
    address = "192.0.2.3";
    sshHostKey = key "forge";
  };
  hosts.abc = {
    address = "192.0.2.4";
    sshHostKey = key "abc";
  };
  services.shop = {
    hosts = [
      "acd"
      "axy"
      "ofgr1e"
    ];
    port = 2;
  };
  services.blog = {
    hosts = [
      "alpha"
      "gamma"
    ];
    port = 1;
  };
  providers.cert.hosts = [ "alphas" ];
}
