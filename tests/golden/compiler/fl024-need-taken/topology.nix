{ base, merge, ... }:
merge base {
  providers.file.hosts = [ "alpha" ];
  services.a = {
    host = "beta";
    port = 1;
    files.b-c.ref = "x";
  };
  services.a-b = {
    host = "beta";
    port = 2;
    files.c.ref = "y";
  };
}
