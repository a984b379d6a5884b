{
  roles = [ "family" ];
}
