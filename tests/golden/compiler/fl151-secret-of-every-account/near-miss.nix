{ base, merge, ... }:
merge base {
  secrets.tunnel = {
    generate = "wireguard";
    readers = [
      {
        host = "beta";
        mode = "0440";
      }
    ];
  };
  providers.secret.hosts = [ "alpha" ];
}
