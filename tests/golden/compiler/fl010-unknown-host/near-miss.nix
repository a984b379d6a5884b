{ base, merge, ... }:
merge base {
  services.blog = {
    hosts = [
      "alpha"
      "beta"
    ];
    port = 1;
  };
  providers.cert.hosts = [ "beta" ];
}
