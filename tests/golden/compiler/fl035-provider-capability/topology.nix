{ base, merge, ... }:
merge base {
  providers.cert = {
    hosts = [
      "alpha"
      "beta"
    ];
    requires = [ "hsm" ];
  };
  hosts.beta.capabilities = [ "hsm" ];
}
