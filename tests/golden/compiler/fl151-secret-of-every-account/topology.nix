{ base, merge, ... }:
merge base {
  secrets.tunnel = {
    generate = "wireguard";
    readers = [
      {
        host = "beta";
        mode = "0444";
      }
    ];
  };
  providers.secret.hosts = [ "alpha" ];
}
