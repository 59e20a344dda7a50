// The surface of a ball, fine enough for 75,000 vertices and 150,000 triangles.
SetFactory("OpenCASCADE");
Sphere(1) = {0, 0, 0, 1};
Mesh.MeshSizeMin = 0.0138;
Mesh.MeshSizeMax = 0.0138;
Mesh.RandomSeed = 1;
