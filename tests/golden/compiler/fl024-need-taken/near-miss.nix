{ base, merge, ... }:
merge base {
  providers.file.hosts = [ "alpha" ];
  # They are on different hosts.
  services.a = {
    host = "alpha";
    port = 1;
    files.b-c.ref = "x";
  };
  services.a-b = {
    host = "beta";
    port = 2;
    files.c.ref = "y";
  };
}
